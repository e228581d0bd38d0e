// Why it is slow: for a subscriber and a direction the first cause on the path of its packets, and for the whole
// page the nodes that are full.

import * as format from "./format.js";

/** From this share of its limit on a link counts as full: rates are those of a second, and a shaper has bursts. */
const FULL = 0.95;
/** A queue that adds less, ms, is felt by nobody: of an interactive program's 100 ms it is a fifth. */
const LONG_MS = 20;
/** A round trip beyond this machine that is felt, ms. */
const FAR_MS = 100;

const middle = (values) => [...values].sort((one, other) => one - other)[values.length >> 1];
const numberOf = (path) => path.split("/").at(-1);
const ofLimit = ({ rate_bps: rate, limit_bps: limit }) => `${format.rate(rate)} of ${format.rate(limit)}`;

/** Whether a class or node sends what it may send. */
export const isFull = ({ rate_bps: rate, limit_bps: limit }) => Boolean(limit) && rate >= FULL * limit;

/** Returns nodes by the number of their class. Several workers have a part of each. */
export function wholeNodes(nodes) {
  const whole = new Map();
  for (const node of nodes) {
    const known = whole.get(numberOf(node.class));
    whole.set(numberOf(node.class), { ...node, rate_bps: node.rate_bps + (known?.rate_bps ?? 0) });
  }
  return whole;
}

/** Returns the nodes that a subscriber's class shares with others, its own one first and the line last. */
export function sharedBy(figures, nodes) {
  const whole = wholeNodes(nodes);
  const found = [];
  let next = whole.get(String(figures?.node));
  while (next && !found.includes(next)) {
    found.push(next);
    next = whole.get(String(next.node));
  }
  return found;
}

/** Returns the nodes that are full, in the order of the path. */
export const fullNodes = (nodes) => [...wholeNodes(nodes).values()].filter(isFull);

/**
 * Says in a sentence or two why a direction of a subscriber is slow, or that nothing here is.
 *
 * `figures` are those of its class, nothing if no packet has come to it. `shared` are the nodes above it. `trips` are
 * medians of round trips of its flows beyond this machine, ms: for `down` to its devices, for `up` to servers.
 */
export function why(side, figures, shared, trips) {
  if (!figures || !figures.packets_per_s) return "Nothing passes just now.";
  const waits = `A packet waits ${format.delay(figures.delay_ms)} here.`;
  if (isFull(figures)) return `Its plan is used up: ${ofLimit(figures)}. ${waits}`;
  const full = shared.find(isFull);
  if (full) return `${full.name} is full: ${ofLimit(full)} for all who share it. ${waits}`;
  if (figures.delay_ms >= LONG_MS) return `Bursts wait here though nothing is full. ${waits}`;
  if (trips.length && middle(trips) >= FAR_MS) {
    const trip = `${format.delay(middle(trips))} (median of ${format.count(trips.length)} flows)`;
    return side === "down"
      ? `Slow behind its connection: to its devices and back takes ${trip}. Look at its Wi-Fi.`
      : `Far servers: there and back takes ${trip}.`;
  }
  return `Nothing here slows it. ${waits}`;
}
