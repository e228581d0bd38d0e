// The subscribers that are worst off: longest delay, most drops, or most of their plan in use.

import * as api from "./api.js";
import { byId, h, named, segments, setText } from "./dom.js";
import * as format from "./format.js";

const SORTS = [["delay", "Longest delay"], ["drops", "Most drops"], ["use", "Most of the plan"], ["rate", "Rate"]];
const SHOWN = 50;

export class Subscribers {
  /** `tree` knows the limits of the classes. `onChoose` is called with the class of a chosen subscriber. */
  constructor(tree, onChoose) {
    this.tree = tree;
    this.onChoose = onChoose;
    this.sort = "delay";
    this.byClass = new Map();
    const sorts = h("div", { class: "segments", role: "radiogroup", "aria-label": "Worst by" });
    this.body = h("tbody");
    this.count = h("span", { class: "muted small" });
    byId("subscribers").replaceChildren(h("section", { class: "card", "aria-labelledby": "subscribers-title" },
      h("div", { class: "card-head" }, h("h2", { id: "subscribers-title" }, "Worst subscribers"), this.count, sorts),
      h("table", { class: "grid" },
        h("caption", { class: "visually-hidden" }, "The worst subscribers of this direction, worst first"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Subscriber"),
          h("th", { scope: "col", class: "wide" }, "Plan"),
          ...["Rate", "Of its limit", "Delay", "Drops/s"].map((name, at) =>
            h("th", { scope: "col", class: at === 1 ? "number wide" : "number" }, name)))),
        this.body)));
    segments(sorts, "subscriber-sort", SORTS, this.sort, (sort) => {
      this.sort = sort;
      this.update();
    });
  }

  /** Reads the list. It may have changed if the trees have. */
  async load() {
    const document = await api.get("/v1/subscribers");
    this.byClass = new Map(document.subscribers.map((entry) => [String(document.classes[entry.id]), entry]));
  }

  /** Returns the name of the subscriber that has a class, or an empty text. */
  labelOf(path) {
    const entry = this.byClass.get(path);
    return entry ? entry.name || entry.id : "";
  }

  /** Reads who is worst now. */
  async update(from = this.from) {
    this.from = from;
    // What is in use of a plan is known here alone, so it is looked for among all who send.
    const isUse = this.sort === "use";
    const asked = { from, sort: isUse ? "rate" : this.sort, limit: isUse ? 2000 : 4 * SHOWN };
    const document = await api.get("/v1/classes", asked);
    // With several workers, a path begins with the number of the worker. A subscriber has one worker.
    const isSharded = document.classes[0]?.discipline === "sharded";
    const inTree = (figures) => ({ ...figures, class: figures.class.slice(figures.class.indexOf("/") + 1) });
    const rows = (isSharded ? document.classes.map(inTree) : document.classes)
      .filter((figures) => this.byClass.has(figures.class))
      .map((figures) => {
        const limit = this.tree.limitOf(figures.class);
        return { figures, limit, use: limit ? figures.rate_bps / limit : 0 };
      });
    if (isUse) rows.sort((one, other) => other.use - one.use);
    setText(this.count, `${format.count(this.byClass.size)} subscribers, ${format.count(rows.length)} seen`);
    this.body.replaceChildren(...rows.slice(0, SHOWN).map((row) => this.row(row)));
  }

  row({ figures, limit, use }) {
    const entry = this.byClass.get(figures.class);
    const button = h("button", { type: "button", class: "link", onclick: () => this.onChoose(figures.class) },
      named(entry.name || entry.id));
    const bar = h("span", { class: "bar-fill" });
    bar.style.width = `${Math.min(1, use) * 100}%`;
    const dropped = figures.dropped_per_s > 0 ? "number bad" : "number";
    return h("tr", {},
      h("th", { scope: "row" }, button, h("span", { class: "kind" }, entry.name ? named(entry.id) : "")),
      h("td", { class: "wide muted" }, named(entry.plan ?? "own rates")),
      h("td", { class: "number rate" }, h("span", { class: "rate-text" }, format.rate(figures.rate_bps)),
        h("span", { class: "rate-bar", "aria-hidden": "true" }, bar)),
      h("td", { class: "number wide" }, limit ? `${format.percent(use)} of ${format.rate(limit)}` : format.none),
      h("td", { class: "number" }, format.delay(figures.delay_ms)),
      h("td", { class: dropped }, format.perSecond(figures.dropped_per_s)));
  }
}
