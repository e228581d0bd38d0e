// The chosen class: what it does, what was set, and the ways to change it.

import * as api from "./api.js";
import { byId, h, setText, terms } from "./dom.js";
import * as format from "./format.js";
import { nameOf, READS } from "./list.js";

/** What a provider calls the settings of its classes. */
const WORDS = { ceil: "limit", ul: "limit", bandwidth: "limit", rate: "guaranteed" };

/** Of how many flows round trips are asked for. */
const FLOWS = 1000;

const median = (values) => values.sort((one, other) => one - other)[values.length >> 1];

/** Words for the settings of a place. */
const settingsOf = (place, words) => {
  const pairs = Object.entries(place.settings).map(([name, value]) => [words[name] ?? name, value]);
  if (!pairs.length) return [h("p", { class: "muted small" }, "Nothing was set here; all has its default.")];
  return [h("dl", { class: "settings" }, ...terms(pairs))];
};

export class Detail {
  /** `list` knows whose a class is. `actions` are {change, changeNode, changeSubscriber, openSubscriber,
   * focus}: what the buttons do. */
  constructor(tree, list, actions) {
    this.tree = tree;
    this.list = list;
    this.actions = actions;
    this.element = byId("detail");
  }

  /** Shows a place. */
  show(path) {
    const place = this.tree.byPath?.get(path);
    if (!place) return;
    if (path !== this.path) this.trips = null;
    this.path = path;
    const subscriber = this.list.of(path);
    const called = path === "root" ? "Root" : `Class ${path}`;
    const kind = place.discipline ?? (place.name ? "node" : "inner class");
    const words = [subscriber?.name ? subscriber.id : null, kind, place.host];
    this.figures = h("dl", { class: "figures" });
    // Several workers have a history each.
    const canFocus = place.discipline !== null && !place.hosts && !this.tree.isSharded;
    this.element.replaceChildren(
      h("div", { class: "card-head" },
        h("h2", { id: "detail-title" }, subscriber ? nameOf(subscriber) : place.name ?? called, " ",
          h("small", { class: "muted" }, words.filter(Boolean).join(" · ")))),
      subscriber ? h("p", { class: "small" }, subscriber.prefixes.join(", ")) : "",
      this.figures,
      h("h3", {}, "Set"),
      ...settingsOf(place, this.list.isThere ? WORDS : {}),
      h("div", { class: "actions" },
        this.changeButton(path, place),
        subscriber
          ? h("button", { type: "button", class: "quiet", onclick: () => this.actions.openSubscriber(subscriber.id) },
            "Both directions …")
          : null,
        canFocus && path !== "root"
          ? h("button", { type: "button", class: "quiet", onclick: () => this.actions.focus(path) },
            "Only this class in the charts")
          : null));
    this.update();
  }

  /** Returns the button that changes a place, or says who decides about it: a list gives its trees as a whole. */
  changeButton(path, place) {
    const button = (text, onclick) => h("button", { type: "button", class: "primary", id: "open-change", onclick }, text);
    const note = (text) => h("p", { class: "muted small", id: "not-here" }, text);
    if (!this.list.mayChange) return note(READS);
    if (!this.list.isThere) return button("Change …", () => this.actions.change(place.change));
    const subscriber = this.list.holderOf(path);
    if (this.list.above.has(place.name)) {
      if (!this.list.isChangeable) return note(this.list.reason);
      return button("Change the rates …", () => this.actions.changeNode(place.name));
    }
    if (!subscriber) return note("The list of subscribers decides about this class: change [subscribers] in the file of the run.");
    if (!this.list.isChangeable) return note(this.list.reason);
    return button("Change the subscriber …", () => this.actions.changeSubscriber(subscriber.id));
  }

  /** Reads the round trips of the flows below a node of the network, as far as TCP shows them in passing. */
  async readRoundTrips(from) {
    const { path } = this;
    const place = this.tree.byPath?.get(path);
    if (!place?.name || place.discipline || !this.list.above.has(place.name)) return;
    const { flows } = await api.get("/v1/flows", { limit: FLOWS });
    const isHere = (flow) => flow.from === from && flow.round_trip_ms && flow.subscriber
      && this.list.isBelow(flow.subscriber.id, place.name);
    const trips = flows.filter(isHere).map((flow) => flow.round_trip_ms.median);
    if (path !== this.path) return;
    this.trips = trips.length ? [format.delay(median(trips)), `median of ${format.count(trips.length)} flows`] : null;
    this.update();
  }

  /** Shows what the place does now. */
  update() {
    if (!this.path || !this.figures) return;
    const now = this.tree.figuresOf(this.path);
    const limit = this.tree.limitOf(this.path);
    const share = now && limit ? `${format.percent(now.rate_bps / limit)} of ${format.rate(limit)}` : "";
    const pairs = [
      ["Rate", now ? format.rate(now.rate_bps) : format.none, share],
      ["Delay, mean", now ? format.delay(now.delay_ms) : format.none, ""],
      ["Delay, p95", now ? format.delay(now.p95_ms) : format.none,
        typeof now?.p99_ms === "number" ? `p99 ${format.delay(now.p99_ms)}` : ""],
      ["Packets/s", now ? format.perSecond(now.packets_per_s) : format.none, ""],
      ["Drops/s", now ? format.perSecond(now.dropped_per_s) : format.none,
        now ? `${format.count(now.dropped_packets)} since the start` : ""],
      ["Marks/s", now ? format.perSecond(now.marked_per_s) : format.none, ""],
      ["Waiting", now ? format.bytes(now.backlog_bytes) : format.none,
        now ? `${format.count(now.backlog_packets)} packets` : ""],
      ["Sent", now ? format.bytes(now.sent_bytes) : format.none, "since the start"],
    ];
    if (this.trips) pairs.push(["Round trip", ...this.trips]);
    // The same elements are kept, so that a selection of text stays.
    if (this.figures.children.length === pairs.length) {
      pairs.forEach(([, value, note], place) => {
        const dd = this.figures.children[place].querySelector("dd");
        setText(dd.firstChild, value);
        setText(dd.lastChild, note);
      });
      return;
    }
    this.figures.replaceChildren(...pairs.map(([term, value, note]) =>
      h("div", {}, h("dt", {}, term), h("dd", { class: "number" }, h("span", {}, value), h("small", {}, note)))));
  }
}
