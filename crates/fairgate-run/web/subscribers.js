// The subscribers that are worst off: longest delay, most drops, or most of their plan in use.

import * as api from "./api.js";
import { byId, h, named, segments, setText } from "./dom.js";
import * as format from "./format.js";
import { nameOf } from "./list.js";

const SORTS = [["delay", "Longest delay"], ["drops", "Most drops"], ["use", "Most of the plan"], ["rate", "Rate"]];
const SHOWN = 50;
/** Among how many with the highest rate those are looked for that use most of their plan. */
const MOST = 2000;

export class Subscribers {
  /**
   * `tree` knows the limits of the classes, and `list` whose they are. `onChoose` is called with the class of a
   * chosen subscriber.
   */
  constructor(tree, list, onChoose) {
    this.tree = tree;
    this.list = list;
    this.onChoose = onChoose;
    this.sort = "delay";
    const sorts = h("div", { class: "segments", role: "radiogroup", "aria-label": "Worst by" });
    this.body = h("tbody");
    this.count = h("span", { class: "muted small" });
    byId("subscribers").replaceChildren(h("section", { class: "card", "aria-labelledby": "subscribers-title" },
      h("div", { class: "card-head" }, h("h2", { id: "subscribers-title" }, "Worst subscribers"), this.count, sorts),
      h("table", { class: "grid" },
        h("caption", { class: "visually-hidden" }, "The worst subscribers of this direction, worst first"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Subscriber"),
          h("th", { scope: "col", class: "wide text" }, "Plan"),
          ...[["Rate", "rate"], ["Of its limit", "share wide"], ["Delay", ""], ["Drops/s", ""]].map(([name, kind]) =>
            h("th", { scope: "col", class: `number ${kind}`.trim() }, name)))),
        this.body)));
    segments(sorts, "subscriber-sort", SORTS, this.sort, (sort) => {
      this.sort = sort;
      this.update();
    });
  }

  /** Reads who is worst now. */
  async update(from = this.from) {
    this.from = from;
    // What is in use of a plan is known here alone, so it is looked for among all who send.
    const isUse = this.sort === "use";
    const asked = { from, sort: isUse ? "rate" : this.sort, limit: isUse ? MOST : 4 * SHOWN };
    const document = await api.get("/v1/classes", asked);
    // With several workers, a path begins with the number of the worker. A subscriber has one worker.
    const isSharded = document.classes[0]?.discipline === "sharded";
    const inTree = (figures) => ({ ...figures, class: figures.class.slice(figures.class.indexOf("/") + 1) });
    const rows = (isSharded ? document.classes.map(inTree) : document.classes)
      .filter((figures) => this.list.of(figures.class))
      .map((figures) => {
        const limit = this.tree.limitOf(figures.class);
        return { figures, limit, use: limit ? figures.rate_bps / limit : 0 };
      });
    if (isUse) rows.sort((one, other) => other.use - one.use);
    const shown = rows.slice(0, SHOWN);
    const count = `${format.count(this.list.size)} subscribers, ${format.count(document.subscribers)} have had packets`;
    const isPart = isUse && document.count > document.classes.length;
    const among = isPart ? ` of the ${format.count(MOST)} classes with the highest rate` : "";
    setText(this.count, `${count}, ${format.count(shown.length)}${among} are shown`);
    this.body.replaceChildren(...shown.map((row) => this.row(row)));
  }

  row({ figures, limit, use }) {
    const entry = this.list.of(figures.class);
    const button = h("button", { type: "button", class: "link", onclick: () => this.onChoose(figures.class) },
      named(nameOf(entry)));
    const bar = h("span", { class: "bar-fill" });
    bar.style.width = `${Math.min(1, use) * 100}%`;
    const dropped = figures.dropped_per_s > 0 ? "number bad" : "number";
    return h("tr", {},
      h("th", { scope: "row" }, h("div", { class: "called" }, button,
        entry.name ? h("span", { class: "kind" }, named(entry.id)) : null)),
      h("td", { class: "wide muted" }, named(entry.plan ?? "own rates")),
      h("td", { class: "number rate" }, h("span", { class: "rate-text" }, format.rate(figures.rate_bps)),
        h("span", { class: "rate-bar", "aria-hidden": "true" }, bar)),
      h("td", { class: "number wide share" }, limit ? `${format.percent(use)} of ${format.rate(limit)}` : format.none),
      h("td", { class: "number" }, format.delay(figures.delay_ms)),
      h("td", { class: dropped }, format.perSecond(figures.dropped_per_s)));
  }
}
