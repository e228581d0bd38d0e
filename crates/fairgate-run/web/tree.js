// The tree of a direction: its places, what they do, and which one is chosen. It is a treegrid (WAI-ARIA):
// the arrow keys move and open, Enter chooses.

import { byId, h, makePager, named, setText } from "./dom.js";
import { finder } from "./find.js";
import * as format from "./format.js";
import { nameOf } from "./list.js";

/** How many classes of hosts are shown: those that send most. */
const MOST_HOSTS = 50;

/** How many rows a page has. */
const PAGE = 25;

/** Trees with more places than this show those that packets come to, until the user wants all. */
const FOLDED = 50;

/** A place that was active is shown for this time, ms: rows must not come and go with each packet. */
const STAYS_MS = 60_000;

/** How a place is called: the last number of its path, and what is in it. */
const lastOf = (path) => (path === "root" ? "root" : path.slice(path.lastIndexOf("/") + 1));

export class Tree {
  /** `onChoose` is called with the place that the user chooses; `list` knows whose a class is. */
  constructor(onChoose, list) {
    this.onChoose = onChoose;
    this.list = list;
    this.places = [];
    this.closed = new Set();
    this.chosen = "root";
    this.focused = "root";
    this.rows = new Map();
    this.figures = new Map();
    this.isSharded = false;
    /** Whether places that no packet comes to are shown, too. */
    this.hasIdle = false;
    this.page = 0;
    /** When packets came to a place last, by its path. */
    this.activeAt = new Map();
    this.pager = makePager(byId("tree-pager"), (page) => this.turnTo(page));
    this.body = byId("tree").querySelector("tbody");
    this.body.addEventListener("keydown", (event) => this.press(event));
    this.body.addEventListener("click", (event) => this.click(event));
    byId("tree-find").addEventListener("input", () => this.turnTo(0));
    byId("tree-idle").addEventListener("change", (event) => {
      this.hasIdle = event.target.checked;
      this.turnTo(0);
    });
  }

  /**
   * Takes another outline. Classes for hosts are one place, which is called by their numbers: 100-119. Below it
   * are those that hosts have.
   */
  setPlaces(places) {
    this.places = places.map((place) =>
      ({ ...place, change: place.path, path: place.hosts ? `${place.path}-${hostsEnd(place)}` : place.path }));
    this.children = new Map(this.places.map((place) => [place.path, []]));
    this.parents = new Map();
    for (const place of this.places) {
      if (place.above === null) continue;
      const above = this.places[place.above].path;
      this.children.get(above).push(place);
      this.parents.set(place.path, above);
    }
    this.byPath = new Map(this.places.map((place) => [place.path, place]));
    this.addHosts();
    if (!this.byPath.has(this.chosen)) this.choose("root");
    byId("tree-find").title = `By ${this.words()}, or class:20`;
    byId("tree-fold").hidden = this.places.length <= FOLDED;
    this.build();
  }

  /** What a place is found by. */
  words() {
    return this.list.isThere ? "name, identifier or address" : "discipline or host";
  }

  /** Takes the figures of the classes, by path. */
  setFigures(figures) {
    this.figures = figures;
    this.isSharded = figures.get("root")?.discipline === "sharded";
    const now = performance.now();
    for (const [path, { packets_per_s: packets, backlog_packets: waiting }] of figures) {
      if (packets > 0 || waiting > 0) this.activeAt.set(path, now);
    }
    const isNew = this.addHosts();
    if (isNew || this.isFolded() && this.activeKey() !== this.shownKey) this.build();
    for (const [path, row] of this.rows) this.fill(path, row);
  }

  /** Puts the classes that hosts have below their place. Returns whether there are others than before. */
  addHosts() {
    let isNew = false;
    for (const place of this.places.filter((one) => one.hosts)) {
      const slash = place.change.lastIndexOf("/") + 1;
      const first = Number(lastOf(place.change));
      const isOfPlace = ({ class: path, host }) => host && path.lastIndexOf("/") + 1 === slash
        && path.startsWith(place.change.slice(0, slash))
        && lastOf(path) >= first && lastOf(path) < first + place.hosts;
      const seen = [...this.figures.values()].filter(isOfPlace).sort((one, other) => other.rate_bps - one.rate_bps);
      const hosts = seen.slice(0, MOST_HOSTS).map(({ class: path, discipline, host }) =>
        ({ path, discipline, host, change: place.change, settings: place.settings }));
      // They keep their order as long as they are the same.
      hosts.sort((one, other) => lastOf(one.path) - lastOf(other.path));
      const before = this.children.get(place.path);
      if (before.map((one) => one.path + one.host).join() === hosts.map((one) => one.path + one.host).join()) continue;
      isNew = true;
      for (const one of before) this.byPath.delete(one.path);
      for (const one of hosts) {
        this.byPath.set(one.path, one);
        this.children.set(one.path, []);
        this.parents.set(one.path, place.path);
      }
      this.children.set(place.path, hosts);
      if (!this.byPath.has(this.chosen)) this.choose(place.path);
    }
    return isNew;
  }

  /** Returns what a place does. An inner class has no figures: it does what the classes below it do. */
  figuresOf(path) {
    const own = this.figures.get(path);
    const place = this.byPath.get(path);
    if (own || (place?.discipline && !place.hosts)) return own ?? null;
    const below = (this.children.get(path) ?? []).map((place) => this.figuresOf(place.path)).filter(Boolean);
    if (!below.length) return null;
    const sum = (name) => below.reduce((all, figures) => all + (figures[name] ?? 0), 0);
    const packets = sum("packets_per_s");
    const waited = below.reduce((all, one) => all + (one.delay_ms ?? 0) * one.packets_per_s, 0);
    return {
      rate_bps: sum("rate_bps"),
      packets_per_s: packets,
      delay_ms: packets > 0 ? waited / packets : null,
      // They can't be told from those of the classes below.
      p95_ms: null,
      p99_ms: null,
      dropped_per_s: sum("dropped_per_s"),
      marked_per_s: sum("marked_per_s"),
      backlog_bytes: sum("backlog_bytes"),
      backlog_packets: sum("backlog_packets"),
      sent_bytes: sum("sent_bytes"),
      dropped_packets: sum("dropped_packets"),
    };
  }

  /** Returns the rate that is all of a place's: what it may send at most. */
  limitOf(path) {
    const { settings } = this.byPath.get(path) ?? { settings: {} };
    for (const name of ["ceil", "ul", "bandwidth", "rate"]) {
      const limit = format.readRate(settings[name]);
      if (limit) return limit;
    }
    return null;
  }

  /** Whether only active places are shown. */
  isFolded() {
    return this.places.length > FOLDED && !this.hasIdle && !byId("tree-find").value.trim();
  }

  /** Returns the active places, and those above them. */
  active() {
    const since = performance.now() - STAYS_MS;
    const active = new Set(["root"]);
    for (const [path, at] of this.activeAt) {
      if (at < since) this.activeAt.delete(path);
      for (let above = path; at >= since && above && !active.has(above); above = this.parents.get(above)) active.add(above);
    }
    return active;
  }

  activeKey() {
    return [...this.active()].sort().join();
  }

  /** Shows another page of rows. */
  turnTo(page) {
    this.page = page;
    this.build();
  }

  /** Makes the rows that are to be seen. */
  build() {
    const wanted = byId("tree-find").value.trim();
    const hadFocus = this.body.contains(document.activeElement);
    const fits = wanted ? finder(wanted) : null;
    const visible = [];
    const isFolded = this.isFolded();
    const active = isFolded ? this.active() : null;
    this.shownKey = isFolded ? this.activeKey() : "";
    const walk = (place, level) => {
      const rank = fits ? fits(place, this.list.of(place.path)) : 0;
      if (active && !active.has(place.path)) return;
      if (rank !== null) visible.push([place, fits ? 1 : level, rank]);
      if (!fits && this.closed.has(place.path)) return;
      for (const below of this.children.get(place.path)) walk(below, level + 1);
    };
    if (this.places.length) walk(this.places[0], 1);
    // The best is first. Those that fit alike keep their order.
    visible.sort(([, , one], [, , other]) => one - other);
    this.order = visible.map(([place]) => place.path);
    const pages = Math.max(1, Math.ceil(visible.length / PAGE));
    this.page = Math.min(this.page, pages - 1);
    const shown = visible.slice(this.page * PAGE, (this.page + 1) * PAGE);
    this.rows = new Map(shown.map(([place, level]) => [place.path, this.makeRow(place, level, Boolean(wanted))]));
    this.body.replaceChildren(...this.rows.values());
    if (!this.rows.has(this.focused)) this.focused = this.rows.keys().next().value;
    for (const [path, row] of this.rows) this.fill(path, row);
    this.setFocusable();
    if (hadFocus) this.rows.get(this.focused)?.focus();
    this.pager(this.page, PAGE, visible.length);
    const idle = this.places.length - visible.length;
    const note = byId("tree-note");
    note.hidden = visible.length > 0 && !(isFolded && idle);
    setText(note, visible.length
      ? `${format.count(idle)} idle classes are not shown: no packet has come to them in the last minute. They are found by ${this.words()}.`
      : `Nothing has this in its ${this.words()}. class:20 finds the class of this number.`);
  }

  makeRow(place, level, isFlat) {
    const { path } = place;
    const below = this.children.get(path);
    const isClosed = this.closed.has(path);
    const subscriber = this.list.of(path);
    const number = isFlat ? path : lastOf(path);
    const kind = `${place.discipline ?? "inner class"}${place.hosts ? ", for hosts" : ""}`;
    // A list calls its classes by names. The number of a class looks like the identifier of a subscriber.
    const called = subscriber
      ? [named(nameOf(subscriber)), h("span", { class: "kind" },
        subscriber.name ? named(subscriber.id) : null, subscriber.name ? " · " : null, kind)]
      : place.name ? [named(place.name), h("span", { class: "kind" }, place.discipline ? kind : "node")]
        : [h("span", { class: "number" }, number), place.host ? named(place.host) : null,
          h("span", { class: "kind" }, kind)];
    const name = h("td", { role: "gridcell", class: "name" }, h("div", {},
      h("span", { class: "twist", "aria-hidden": "true" }, below.length && !isFlat ? (isClosed ? "▸" : "▾") : ""),
      h("span", { class: "called" }, ...called.filter(Boolean))));
    name.firstChild.style.setProperty("--level", level - 1);
    const bar = h("span", { class: "bar-fill" });
    const row = h("tr", {
      role: "row", "aria-level": level, "data-path": path, tabindex: "-1",
      "aria-expanded": below.length && !isFlat ? String(!isClosed) : null,
    },
    name,
    h("td", { role: "gridcell", class: "number rate" }, h("span", { class: "rate-text" }),
      h("span", { class: "rate-bar", "aria-hidden": "true" }, bar)),
    h("td", { role: "gridcell", class: "number delay" }),
    h("td", { role: "gridcell", class: "number wide p95" }),
    h("td", { role: "gridcell", class: "number drops" }),
    h("td", { role: "gridcell", class: "number wide waiting" }));
    return row;
  }

  fill(path, row) {
    const figures = this.figuresOf(path);
    const limit = this.limitOf(path);
    const set = (selector, text) => setText(row.querySelector(selector), text);
    set(".rate-text", figures ? format.rate(figures.rate_bps) : format.none);
    set(".delay", figures ? format.delay(figures.delay_ms) : format.none);
    set(".p95", figures ? format.delay(figures.p95_ms) : format.none);
    set(".drops", figures ? format.perSecond(figures.dropped_per_s) : format.none);
    set(".waiting", figures ? format.bytes(figures.backlog_bytes) : format.none);
    row.querySelector(".drops").classList.toggle("bad", (figures?.dropped_per_s ?? 0) > 0);
    const all = limit ?? this.figuresOf("root")?.rate_bps ?? 0;
    const share = figures && all > 0 ? Math.min(1, figures.rate_bps / all) : 0;
    row.querySelector(".bar-fill").style.width = `${share * 100}%`;
    row.setAttribute("aria-selected", String(path === this.chosen));
  }

  setFocusable() {
    for (const [path, row] of this.rows) row.tabIndex = path === this.focused ? 0 : -1;
  }

  focus(path) {
    if (!path || !this.rows.has(path)) return;
    this.focused = path;
    this.setFocusable();
    this.rows.get(path).focus();
  }

  choose(path) {
    this.chosen = path;
    for (const [other, row] of this.rows) row.setAttribute("aria-selected", String(other === path));
    this.onChoose(path);
  }

  /** Chooses a place, and shows its row, whatever was looked for. */
  reveal(path) {
    byId("tree-find").value = "";
    for (let above = this.parents.get(path); above; above = this.parents.get(above)) this.closed.delete(above);
    // It is shown for a while, also if no packet comes to it.
    this.activeAt.set(path, performance.now());
    this.build();
    this.turnTo(Math.floor(Math.max(0, this.order.indexOf(path)) / PAGE));
    this.choose(path);
  }

  toggle(path, isOpen) {
    if (isOpen) this.closed.delete(path);
    else this.closed.add(path);
    this.build();
  }

  click(event) {
    const row = event.target.closest("tr");
    if (!row) return;
    const { path } = row.dataset;
    this.focused = path;
    if (event.target.classList.contains("twist")) this.toggle(path, this.closed.has(path));
    else this.choose(path);
    this.setFocusable();
  }

  press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const paths = [...this.rows.keys()];
    const at = paths.indexOf(this.focused);
    const row = this.rows.get(this.focused);
    const expanded = row?.getAttribute("aria-expanded");
    const above = this.parents.get(this.focused);
    const keys = {
      PageDown: () => this.turnTo(this.page + 1),
      PageUp: () => this.turnTo(Math.max(0, this.page - 1)),
      ArrowDown: () => this.focus(paths[at + 1]),
      ArrowUp: () => this.focus(paths[at - 1]),
      Home: () => this.focus(paths[0]),
      End: () => this.focus(paths.at(-1)),
      ArrowRight: () => (expanded === "false" ? this.toggle(this.focused, true) : expanded && this.focus(paths[at + 1])),
      ArrowLeft: () => (expanded === "true" ? this.toggle(this.focused, false) : this.focus(above)),
      Enter: () => this.choose(this.focused),
      " ": () => this.choose(this.focused),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}

const hostsEnd = (place) => Number(lastOf(place.path)) + place.hosts - 1;
