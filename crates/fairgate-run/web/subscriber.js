// The page of a subscriber: both directions, as Download and Upload.

import { Charts } from "./charts.js";
import { h, segments, setText, terms } from "./dom.js";
import { flowRow } from "./flows.js";
import * as format from "./format.js";
import { nameOf } from "./list.js";
import { Pair } from "./pair.js";

const RANGES = [["60", "1 min"], ["600", "10 min"], ["7200", "2 h"], ["86400", "24 h"]];
const FLOWS = 20;
/** From this length on steps are long, seconds. */
const LONG_STEP_S = 300;
const SIDES = { down: "Download", up: "Upload" };

export class SubscriberPage {
  /** `actions` are {change, showInTree, close}: what the buttons do. */
  constructor(list, sides, actions) {
    this.list = list;
    this.sides = sides;
    this.actions = actions;
    this.id = null;
    this.seconds = 600;
    this.element = h("section", { id: "subscriber", "aria-labelledby": "subscriber-title", tabindex: "-1" });
    this.build();
  }

  /** Shows a subscriber, below this element. */
  open(id, holder) {
    this.id = id;
    this.pair = new Pair(this.sides, id, this.seconds);
    this.shownEntry = null;
    holder.append(this.element);
    this.update();
    this.element.focus();
  }

  close() {
    this.id = null;
    this.element.remove();
  }

  build() {
    this.head = h("div", { class: "card" });
    this.tiles = h("div", { class: "sides" });
    const ranges = h("div", { class: "segments", role: "radiogroup", "aria-label": "Time range of the subscriber" });
    const [legend, charts] = [h("ul", { class: "legend", "aria-label": "Directions in the charts" }), h("div", { class: "charts" })];
    this.note = h("p", { class: "muted small", hidden: true });
    this.flows = h("tbody");
    this.flowCount = h("span", { class: "muted small" });
    const number = [["Rate", "rate"], ["RTT", ""], ["Delay", "medium"], ["Drops", "count"]];
    this.element.replaceChildren(
      h("div", { class: "bar" },
        h("button", { type: "button", class: "quiet", onclick: () => this.actions.close() }, "All subscribers")),
      this.head, this.tiles,
      h("div", { class: "bar" }, ranges), legend, charts, this.note,
      h("section", { class: "card", "aria-labelledby": "subscriber-flows-title" },
        h("div", { class: "card-head" }, h("h2", { id: "subscriber-flows-title" }, "Flows"), this.flowCount),
        h("table", { class: "grid" },
          h("caption", { class: "visually-hidden" }, "The flows of this subscriber with the highest rates"),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From and to"),
            h("th", { scope: "col", class: "wide text" }, "Direction"),
            ...number.map(([name, kind]) => h("th", { scope: "col", class: `number ${kind}`.trim() }, name)),
            h("th", { scope: "col", class: "number wide" }, "Age"))),
          this.flows)));
    this.charts = new Charts((side) => SIDES[side] ?? side, { legend, charts, prefix: "subscriber-" });
    segments(ranges, "subscriber-range", RANGES, String(this.seconds), (seconds) => {
      this.seconds = Number(seconds);
      this.pair = new Pair(this.sides, this.id, this.seconds);
      this.update();
    });
  }

  /** Reads and shows it. */
  async update() {
    const { id, pair } = this;
    const entry = this.list.byId.get(id);
    this.showHead(entry);
    if (!entry) return;
    const now = await pair.update();
    const flows = now.flows.slice(0, FLOWS);
    if (id !== this.id || pair !== this.pair) return;
    this.showSides(entry, now);
    if (pair.document.at_s.length) this.charts.show(pair);
    this.note.hidden = !pair.isSampled && pair.document.step_s < LONG_STEP_S;
    setText(this.note, pair.isSampled
      ? "The 64 classes that send most have a history in short steps. That of this subscriber begins with this page; longer times show steps of five minutes."
      : "The 64 classes that send most have a history in short steps. That of this subscriber has steps of five minutes.");
    setText(this.flowCount, `${format.count(flows.length)} with the highest rates`);
    const direction = (flow) => SIDES[Object.keys(this.sides).find((side) => this.sides[side] === flow.from)] ?? flow.from;
    this.flows.replaceChildren(...flows.map((flow) => flowRow(flow, direction(flow))));
  }

  showHead(entry) {
    const key = JSON.stringify([entry ?? null, this.list.isChangeable, this.list.unchangeable]);
    if (key === this.shownEntry) return;
    this.shownEntry = key;
    if (!entry) {
      this.head.replaceChildren(h("h2", { id: "subscriber-title" }, `Subscriber ${this.id} is not in the list any more`));
      return;
    }
    const until = entry.limited_until_s ? ` until ${format.until(entry.limited_until_s)}` : "";
    const rate = (most, least) => format.rate(most) + until + (least ? `, at least ${format.rate(least)}` : "");
    const change = this.list.isChangeable
      ? h("button", { type: "button", class: "primary", onclick: () => this.actions.change(entry.id) }, "Change plan and rates …")
      : h("p", { class: "muted small", id: "unchangeable" }, this.list.reason);
    this.head.replaceChildren(
      h("div", { class: "card-head" }, h("h2", { id: "subscriber-title" }, nameOf(entry))),
      h("dl", { class: "settings" }, ...terms([
        ["Identifier", entry.id],
        ["Addresses", entry.prefixes.join(", ") || "none"],
        ["Plan", entry.plan ?? "own rates"],
        ["Download", rate(entry.down_bps, entry.down_min_bps)],
        ["Upload", rate(entry.up_bps, entry.up_min_bps)],
        ["Connected to", entry.node ?? "the line"],
      ])),
      h("div", { class: "actions" }, change,
        h("button", { type: "button", class: "quiet", onclick: () => this.actions.showInTree(String(entry.class)) },
          "Show in the tree")));
  }

  /** `both` has what each direction does now, and why it is slow. */
  showSides(entry, both) {
    this.tiles.replaceChildren(...Object.entries(SIDES).map(([side, title]) => {
      const { figures: now, why } = both[side];
      const limit = entry[`${side}_bps`];
      const of = (name, show) => (now ? show(now[name]) : format.none);
      return h("section", { class: "card", "aria-label": title }, h("h2", {}, title),
        h("p", { class: "why" }, why.text),
        h("dl", { class: "figures" }, ...terms([
          ["Rate", of("rate_bps", format.rate), `${now ? format.percent(now.rate_bps / limit) : "0 %"} of ${format.rate(limit)}`],
          ["Delay", of("delay_ms", format.delay), now?.p95_ms ? `p95 ${format.delay(now.p95_ms)}` : ""],
          ["Drops/s", of("dropped_per_s", format.perSecond), now ? `${format.count(now.dropped_packets)} since the start` : ""],
          ["Waiting", of("backlog_bytes", format.bytes), now ? `${format.count(now.backlog_packets)} packets` : ""],
        ])));
    }));
  }
}
