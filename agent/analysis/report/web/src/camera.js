// What part of the drawing is seen: zoom and pan by mouse, touch and program.
import { select } from "d3-selection";
import "d3-transition";
import { zoom, zoomIdentity } from "d3-zoom";

const LEAST = 0.005;
const MOST = 4;
const MARGIN = 60;

export function makeCamera(canvas, changed) {
  const behaviour = zoom().scaleExtent([LEAST, MOST]).on("zoom", moved);
  const target = select(canvas).call(behaviour).on("dblclick.zoom", null);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let at = zoomIdentity;

  function moved(event) {
    at = event.transform;
    changed();
  }

  function go(transform, slowly) {
    const where = slowly && !still.matches ? target.transition().duration(300) : target.interrupt();
    behaviour.transform(where, transform);
  }

  function fitting(box) {
    const { clientWidth: width, clientHeight: height } = canvas;
    const wide = (width - 2 * MARGIN) / Math.max(box.right - box.left, 1);
    const high = (height - 2 * MARGIN) / Math.max(box.bottom - box.top, 1);
    const k = Math.min(Math.max(Math.min(wide, high), LEAST), 1.25);
    const middle = { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 };
    return putting(middle, { x: width / 2, y: height / 2 }, k);
  }

  return {
    get transform() {
      return at;
    },
    toScreen: ({ x, y }) => ({ x: at.applyX(x), y: at.applyY(y) }),
    toWorld: (x, y) => ({ x: at.invertX(x), y: at.invertY(y) }),
    by: (factor) => behaviour.scaleBy(target, factor),
    fit: (box, slowly = false) => go(fitting(box), slowly),
    fits: (box) => String(at) === String(fitting(box)),
    put: (place, onScreen, k) => go(putting(place, onScreen, k)),
    show(place, least) {
      const middle = { x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 };
      go(putting(place, middle, Math.max(at.k, least)), true);
    },
  };
}

const putting = (place, onScreen, k) =>
  zoomIdentity.translate(onScreen.x - k * place.x, onScreen.y - k * place.y).scale(k);
