// The subscribers: who is worst off (longest delay, most drops, most of the limit in use), who is looked for, how
// full the nodes above them are, and the page of one.

import * as api from "./api.js";
import { byId, h, makePager, named, segments, setText } from "./dom.js";
import { findSubscribers } from "./find.js";
import * as format from "./format.js";
import { nameOf } from "./list.js";
import { Nodes } from "./nodes.js";
import { SubscriberPage } from "./subscriber.js";

const SORTS = [["delay", "Longest delay"], ["drops", "Most drops"], ["use", "Most of the limit"], ["rate", "Rate"]];
const PAGE = 25;
/** Classes that belong to no subscriber are among those that the API lists. */
const OTHERS = 3;
/** Of how many classes figures are asked for, when somebody is looked for. */
const MOST = 2000;

export class Subscribers {
  /**
   * `list` knows the subscribers. `sides` are the interfaces that packets `down` and `up` come from. `actions` are
   * {change, changeAll, showInTree}: what the buttons do.
   */
  constructor(list, sides, actions) {
    this.list = list;
    this.sort = "delay";
    this.page = 0;
    this.actions = actions;
    /** The identifiers of those who are chosen, on whatever page they are. */
    this.chosen = new Set();
    this.offered = [];
    const sorts = h("div", { class: "segments", role: "radiogroup", "aria-label": "Worst by" });
    this.body = h("tbody");
    this.count = h("span", { class: "muted small" });
    this.title = h("h2", { id: "subscribers-title" }, "Worst subscribers");
    this.wanted = h("input", {
      id: "subscriber-find", type: "search", placeholder: "Find a subscriber", autocomplete: "off", spellcheck: "false",
      title: "By name, identifier or address", oninput: () => this.turnTo(0),
    });
    this.chooser = h("div", { class: "chooser", role: "group", "aria-label": "Chosen subscribers" });
    const pager = h("div", { class: "pager", hidden: true });
    this.pager = makePager(pager, (page) => this.turnTo(page));
    this.all = h("section", { class: "card", "aria-labelledby": "subscribers-title" },
      h("div", { class: "card-head" }, this.title, this.count,
        h("label", { class: "find" }, h("span", { class: "visually-hidden" }, "Find a subscriber"), this.wanted), sorts),
      h("table", { class: "grid" },
        h("caption", { class: "visually-hidden" }, "Subscribers of this direction"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Subscriber"),
          h("th", { scope: "col", class: "wide text" }, "Plan"),
          ...[["Rate", "rate"], ["Of its limit", "share wide"], ["Delay", ""], ["Drops/s", ""]].map(([name, kind]) =>
            h("th", { scope: "col", class: `number ${kind}`.trim() }, name)))),
        this.body),
      pager, this.chooser);
    this.one = new SubscriberPage(list, sides, { ...actions, close: () => this.close() });
    this.nodes = new Nodes(list, actions.showInTree);
    byId("subscribers").replaceChildren(this.all, this.nodes.element);
    segments(sorts, "subscriber-sort", SORTS, this.sort, (sort) => {
      this.sort = sort;
      this.turnTo(0);
    });
  }

  /** Shows the page of a subscriber. */
  open(id) {
    this.all.hidden = true;
    this.nodes.element.hidden = true;
    this.one.open(id, byId("subscribers"));
  }

  /** Shows the list again. */
  close() {
    this.one.close();
    this.all.hidden = false;
    this.update();
    this.wanted.focus();
  }

  turnTo(page) {
    this.page = page;
    this.update();
  }

  /** Reads what is shown. */
  async update(from = this.from) {
    this.from = from;
    if (this.one.id !== null) return this.one.update();
    // Somebody types before the directions are known. What is looked for is shown when they are.
    if (!from) return null;
    const text = this.wanted.value;
    const limit = text ? MOST : (this.page + 1) * PAGE + OTHERS;
    const answer = await api.get("/v1/classes", { from, sort: this.sort, limit });
    // Another page was opened, or somebody else is looked for.
    if (this.one.id !== null || text !== this.wanted.value) return null;
    this.nodes.show(answer.nodes);
    const figures = answer.classes.filter((one) => one.subscriber && this.list.byId.has(one.subscriber.id));
    const rows = text.trim() ? this.search(text, figures) : figures.map((one) => [this.list.byId.get(one.subscriber.id), one]);
    const count = text.trim() ? rows.length : answer.subscribers;
    this.page = Math.min(this.page, Math.max(0, Math.ceil(count / PAGE) - 1));
    const shown = rows.slice(this.page * PAGE, (this.page + 1) * PAGE);
    setText(this.title, text.trim() ? "Found subscribers" : "Worst subscribers");
    setText(this.count, `${format.count(this.list.size)} subscribers, ${format.count(answer.subscribers)} have had `
      + `packets, ${format.count(shown.length)} are shown`);
    this.pager(this.page, PAGE, count);
    this.offered = (text.trim() ? rows : shown).map(([entry]) => entry.id);
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    this.body.replaceChildren(...shown.map(([entry, one]) => this.row(entry, one)));
    if (focused) this.body.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
    this.showChooser();
    return null;
  }

  /** Shows how many are chosen, and what can be done with them. */
  showChooser() {
    for (const id of this.chosen) if (!this.list.byId.has(id)) this.chosen.delete(id);
    const { size } = this.chosen;
    const key = `${size} ${this.offered.length} ${this.list.isChangeable}`;
    if (key === this.shownChooser) return;
    this.shownChooser = key;
    const button = (text, kind, onclick) => h("button", { type: "button", class: kind, onclick }, text);
    this.chooser.hidden = !this.list.isChangeable;
    const ofChosen = () => [
      h("span", { class: "muted small number" }, `${format.count(size)} chosen`),
      button("Change them …", "primary", () => this.actions.changeAll([...this.chosen])),
      button("Choose none", "quiet", () => this.choose([...this.chosen], false)),
    ];
    this.chooser.replaceChildren(
      ...(size ? ofChosen() : []),
      button(`Choose these ${format.count(this.offered.length)}`, "quiet", () => this.choose(this.offered, true)));
  }

  /** Chooses some, or leaves them out from now on. */
  choose(ids, isChosen) {
    for (const id of ids) {
      if (isChosen) this.chosen.add(id);
      else this.chosen.delete(id);
    }
    for (const box of this.body.querySelectorAll("input[data-id]")) box.checked = this.chosen.has(box.dataset.id);
    this.showChooser();
  }

  /** Those who fit what is looked for, with their figures if they have some. */
  search(text, figures) {
    const byId_ = new Map(figures.map((one) => [one.subscriber.id, one]));
    return findSubscribers(text, this.list.all()).map((entry) => [entry, byId_.get(entry.id)]);
  }

  box(entry) {
    const box = h("input", {
      type: "checkbox", "data-id": entry.id, "aria-label": `Choose ${nameOf(entry)}`,
      onchange: () => this.choose([entry.id], box.checked),
    });
    box.checked = this.chosen.has(entry.id);
    return box;
  }

  row(entry, figures) {
    const limit = figures?.limit_bps;
    const use = limit ? figures.rate_bps / limit : 0;
    const button = h("button", { type: "button", class: "link", onclick: () => this.open(entry.id) }, named(nameOf(entry)));
    const bar = h("span", { class: "bar-fill" });
    bar.style.width = `${Math.min(1, use) * 100}%`;
    const dropped = figures?.dropped_per_s > 0 ? "number bad" : "number";
    const until = entry.limited_until_s ? `until ${format.until(entry.limited_until_s)}` : null;
    const words = [entry.name ? entry.id : null, entry.node, until].filter(Boolean);
    return h("tr", {},
      h("th", { scope: "row" }, h("div", { class: "called" }, this.list.isChangeable ? this.box(entry) : null, button,
        words.length ? h("span", { class: "kind" }, named(words.join(" · "))) : null)),
      h("td", { class: "wide muted" }, named(entry.plan ?? "own rates")),
      h("td", { class: "number rate" }, h("span", { class: "rate-text" }, format.rate(figures?.rate_bps)),
        h("span", { class: "rate-bar", "aria-hidden": "true" }, bar)),
      h("td", { class: "number wide share" }, limit ? `${format.percent(use)} of ${format.rate(limit)}` : format.none),
      h("td", { class: "number" }, format.delay(figures?.delay_ms)),
      h("td", { class: dropped }, format.perSecond(figures?.dropped_per_s)));
  }
}
