// What the person has chosen. A change is told to all that show it, once a frame at most.

export function makeStore(state) {
  const listeners = [];
  let changed = null;

  function tell() {
    const keys = changed;
    changed = null;
    for (const listener of listeners) listener(state, keys);
  }

  return {
    state,
    listen: (listener) => listeners.push(listener),
    set(change) {
      const keys = Object.keys(change).filter((key) => state[key] !== change[key]);
      if (!keys.length) return;
      Object.assign(state, change);
      if (changed === null) {
        changed = new Set();
        requestAnimationFrame(tell);
      }
      for (const key of keys) changed.add(key);
    },
  };
}
