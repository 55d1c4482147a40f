// Makes elements. Text goes in as text: nothing that a run recorded is ever parsed as markup.

export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child != null));
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

export const quiet = (...words) => h("p", { class: "quiet" }, words);

export const chip = (word, kind = "") => h("span", { class: `chip ${kind}` }, word);

export const list = (kind, items) =>
  h(
    "ul",
    { class: kind },
    items.map((item) => h("li", {}, item)),
  );

export const table = (names, rows) =>
  h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        names.map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h("tbody", {}, rows),
  );

// A row for each name and what is said of it.
export const named = (pairs) =>
  pairs.map(([name, said]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, said)));

// A dialog over the page, there until it is closed.
export function openDialog(kind, label, ...children) {
  const dialog = h(
    "dialog",
    { class: kind, "aria-label": label, onclose: () => dialog.remove() },
    h("button", { class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×"),
    children,
  );
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
