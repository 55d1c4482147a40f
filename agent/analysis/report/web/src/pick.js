// Which state is under the pointer.
import { quadtree } from "d3-quadtree";

const REACH = 14;

export function makePicker(places) {
  const index = quadtree(
    places.map((place, id) => ({ ...place, id })),
    (place) => place.x,
    (place) => place.y,
  );
  return (camera, x, y, count) => {
    const at = camera.toWorld(x, y);
    const found = index.find(at.x, at.y, REACH / Math.min(camera.transform.k, 1.5));
    return found && found.id < count ? found.id : null;
  };
}
