// Elements, and what is said to screen readers.

/** Makes an element: h("td", {class: "number"}, "5"). Properties that begin with "on" are listeners. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : harmless(String(child)))));
  return element;
}

/**
 * Escapes what is not drawn or reorders the line around it, as the program does on a terminal: names come from
 * others, and must not look like other names. Line ends and tabs are kept.
 */
export const harmless = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
  (sign) => ("\n\t".includes(sign) ? sign : `\\u{${sign.codePointAt(0).toString(16)}}`));

/** Makes a name, which is cut if it is long. The whole name is its title. */
export const named = (text) => h("span", { class: "named", title: harmless(text) }, text);

export const byId = (id) => document.getElementById(id);

/** Writes a text only if it is another one, so that the browser does not lay out anew each second. */
export function setText(element, text) {
  const shown = harmless(text);
  if (element.textContent !== shown) element.textContent = shown;
}

let hideToast = 0;

/** Says something at the lower edge, with buttons. It stays for a while, and longer if it has buttons. */
export function toast(text, buttons = []) {
  const element = byId("toast");
  clearTimeout(hideToast);
  element.replaceChildren(h("span", {}, text), ...buttons);
  element.dataset.shown = "yes";
  hideToast = setTimeout(clearToast, buttons.length ? 60_000 : 6_000);
}

export function clearToast() {
  delete byId("toast").dataset.shown;
  byId("toast").replaceChildren();
}

/** Shows what is wrong above everything, or nothing. */
export function alertText(text) {
  const element = byId("alert");
  setText(element, text ?? "");
  element.hidden = !text;
}

/** Says what is wrong with a run that answers. Each text is a line. */
export function warningTexts(texts) {
  const element = byId("warnings");
  setText(element, texts.join("\n"));
  element.hidden = texts.length === 0;
}

/**
 * Makes segments of which one is chosen. The arrow keys move between them, as between all radio buttons.
 * `options` is a list of [value, label].
 */
export function segments(element, name, options, chosen, onChoose) {
  element.replaceChildren(...options.map(([value, label]) => {
    const input = h("input", { type: "radio", name, value, onchange: () => onChoose(value) });
    input.checked = value === chosen;
    return h("label", {}, input, h("span", {}, label));
  }));
}

/**
 * Makes the buttons that turn pages. `onTurn` is called with the number of a page, from 0 on. Returns a function
 * that shows which page of how many rows this is.
 */
export function makePager(element, onTurn) {
  let current = 0;
  const button = (text, step) =>
    h("button", { type: "button", class: "quiet small", onclick: () => onTurn(current + step) }, text);
  const [before, text, next] = [button("Previous", -1), h("span", { class: "muted small number" }), button("Next", 1)];
  element.replaceChildren(before, text, next);
  return (page, size, count) => {
    current = page;
    element.hidden = count <= size;
    before.disabled = page === 0;
    next.disabled = (page + 1) * size >= count;
    const figure = (number) => number.toLocaleString("en");
    setText(text, `${figure(page * size + 1)}–${figure(Math.min(count, (page + 1) * size))} of ${figure(count)}`);
  };
}

/** Makes a list of terms and values. */
export function terms(pairs) {
  return pairs.map(([term, value, note]) =>
    h("div", {}, h("dt", {}, term), h("dd", { class: "number" }, value, note ? h("small", {}, note) : null)));
}
