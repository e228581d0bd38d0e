// The list of subscribers: whose a class is. GET /v1/subscribers

import * as api from "./api.js";

/** Why there is no button. */
export const READS = "Your token may only read.";

export class SubscriberList {
  constructor() {
    /** Whether the token of this page may change anything. */
    this.mayChange = true;
    this.clear();
  }

  /** The run has no list. */
  clear() {
    this.byClass = new Map();
    this.byId = new Map();
    this.above = new Map();
    /** Whether the trees of the run are those of a list. */
    this.isThere = false;
    /** Whether subscribers may be changed, and if not, why. */
    this.isChangeable = false;
    this.unchangeable = null;
  }

  /** Reads the list. It may have changed if the trees have. */
  async load() {
    const document = await api.get("/v1/subscribers");
    this.byClass = new Map(document.subscribers.map((entry) => [String(document.classes[entry.id]), entry]));
    this.byId = new Map(document.subscribers.map((entry) =>
      [entry.id, { ...entry, class: document.classes[entry.id], ...document.shaped[entry.id] }]));
    this.above = new Map(document.nodes.map(({ name, above }) => [name, above]));
    this.isThere = true;
    this.isChangeable = document.is_changeable && this.mayChange;
    this.unchangeable = document.unchangeable ?? null;
  }

  /** Whether a subscriber is connected to a node, or to one below it. */
  isBelow(id, node) {
    let above = this.byId.get(id)?.node;
    while (above && above !== node) above = this.above.get(above);
    return Boolean(above);
  }

  /** Says why subscribers can't be changed, and what to do. */
  get reason() {
    if (!this.mayChange) return READS;
    const { place, message, help } = this.unchangeable ?? { message: "the list can't be changed", help: "" };
    const why = [place, message].filter(Boolean).join(": ");
    return `Plan and rates can't be changed here: ${[why, help].filter(Boolean).join("; ")}.`;
  }

  get size() {
    return this.byClass.size;
  }

  /** Returns all subscribers, each with its class, its node and its limits. */
  all() {
    return [...this.byId.values()];
  }

  /** Returns the subscriber that has a class, or nothing. */
  of(path) {
    return this.byClass.get(path) ?? null;
  }

  /** Returns the subscriber whose class this is, or is in. */
  holderOf(path) {
    return this.of(path.split("/")[0]);
  }
}

/** How a subscriber is called: its name, or its identifier if it has none. */
export const nameOf = (entry) => entry.name || entry.id;

/** Name and identifier. */
export const wholeNameOf = ({ id, name }) => (name ? `${name} · ${id}` : id);
