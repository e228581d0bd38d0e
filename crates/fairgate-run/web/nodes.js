// The nodes of a network as a heat map: the fuller a node is, the warmer its cell. The fullest ones are first.

import { h, named, setText } from "./dom.js";
import * as format from "./format.js";

/** How many cells there are at most. All others are less full. */
const MOST = 120;

/** From this share of its limit on a node is full: rates are those of a second, and a shaper has bursts. */
const FULL = 0.95;

/** What a node uses of its limit. */
const useOf = ({ rate_bps: rate, limit_bps: limit }) => (limit ? rate / limit : 0);

/** Returns nodes by the number of their class. Several workers have a part of each. */
function wholeNodes(nodes) {
  const whole = new Map();
  for (const node of nodes) {
    const number = node.class.split("/").at(-1);
    whole.set(number, { ...node, rate_bps: node.rate_bps + (whole.get(number)?.rate_bps ?? 0) });
  }
  return whole;
}

/** Returns the nodes that are full, in the order of their classes. */
export const fullNodes = (nodes) => [...wholeNodes(nodes).values()].filter((node) => useOf(node) >= FULL);

export class Nodes {
  /** `list` knows the nodes of the network. `reveal` shows a class in the tree. */
  constructor(list, reveal) {
    this.list = list;
    this.reveal = reveal;
    this.count = h("span", { class: "muted small" });
    this.cells = h("ul", { class: "heat" });
    this.element = h("section", { class: "card", id: "nodes", "aria-labelledby": "nodes-title", hidden: true },
      h("div", { class: "card-head" }, h("h2", { id: "nodes-title" }, "Nodes"), this.count), this.cells);
    this.byClass = new Map();
  }

  /** Shows the nodes that packets have come to. */
  show(nodes) {
    const ofNetwork = nodes.filter((node) => this.list.above.has(node.name));
    const all = [...wholeNodes(ofNetwork).values()].sort((one, other) => useOf(other) - useOf(one));
    this.element.hidden = !all.length;
    const shown = all.slice(0, MOST);
    const part = shown.length < all.length ? `the ${format.count(shown.length)} fullest of ` : "";
    setText(this.count, `${part}${format.count(all.length)} with packets, by what they use of their limits`);
    // The same cells are moved, so that one keeps the focus.
    const cells = shown.map((node) => this.cell(node));
    this.byClass = new Map(shown.map((node, place) => [node.class, cells[place]]));
    cells.forEach((cell, place) => {
      if (this.cells.children[place] !== cell) this.cells.insertBefore(cell, this.cells.children[place] ?? null);
    });
    while (this.cells.children.length > cells.length) this.cells.lastChild.remove();
  }

  cell(node) {
    const cell = this.byClass.get(node.class) ?? h("li", {},
      h("button", { type: "button", class: "quiet", onclick: () => this.reveal(node.class) },
        named(node.name), h("span", { class: "number" })));
    const use = useOf(node);
    const [button] = cell.children;
    button.style.setProperty("--use", String(Math.min(1, use)));
    button.title = `${format.rate(node.rate_bps)} of ${format.rate(node.limit_bps)}`;
    setText(button.lastChild, node.limit_bps ? format.percent(use) : format.rate(node.rate_bps));
    return cell;
  }
}
