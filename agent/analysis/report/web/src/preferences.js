// What outlives the moment: the theme, in the address the state that is looked at, and for the page that follows this
// one in its place, how this one was seen.

const THEME = "ramify-theme";
const VIEW = `ramify-view ${location.pathname}`;

export function followTheme() {
  const asked = stored(() => localStorage, THEME);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = asked ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  return theme;
}

export function keepTheme(theme) {
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  keep(() => localStorage, THEME, theme);
}

export const keepView = (view) => keep(() => sessionStorage, VIEW, JSON.stringify(view));

// Only once: a page that a person loads again begins anew.
export function takeView() {
  const view = stored(() => sessionStorage, VIEW);
  if (view !== null) sessionStorage.removeItem(VIEW);
  return JSON.parse(view);
}

export function remember(state) {
  keepTheme(state.theme);
  if (state.selected !== null) history.replaceState(null, "", `#${state.selected}`);
  else if (location.hash) history.replaceState(null, "", location.pathname);
}

export function addressed({ facts, navigation }) {
  const visit = () => {
    const id = Number.parseInt(location.hash.slice(1), 10);
    if (id >= 0 && id < facts.nodes.length) navigation.select(id);
  };
  addEventListener("hashchange", visit);
  visit();
}

// A browser may forbid a file to store anything, and even to ask for the storage.
function stored(storage, key) {
  try {
    return storage().getItem(key);
  } catch {
    return null;
  }
}

function keep(storage, key, value) {
  try {
    storage().setItem(key, value);
  } catch {
    return;
  }
}
