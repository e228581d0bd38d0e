// The page: what is shown, and when it is read.

import * as api from "./api.js";
import { Changes } from "./change.js";
import { Charts } from "./charts.js";
import { Detail } from "./detail.js";
import { alertText, byId, harmless, segments, setText, terms, warningTexts } from "./dom.js";
import { Flows } from "./flows.js";
import * as format from "./format.js";
import { History } from "./history.js";
import { SubscriberList, wholeNameOf } from "./list.js";
import { askForToken } from "./login.js";
import { fullNodes } from "./nodes.js";
import { offer } from "./packets.js";
import { Subscribers } from "./subscribers.js";
import { Tree } from "./tree.js";

/** How often what is shown is read. The run itself is read once a second, for all pages together. */
const INTERVAL_MS = 1000;
/** How many classes are asked for: all of a tree that can be shown as a whole. */
const MOST_CLASSES = 1000;
/** How long a node is full before the page says so. */
const OVERLOAD_MS = 60_000;
const HIGHEST = ["p95_ms", "p99_ms"];
const RANGES = [["60", "1 min"], ["600", "10 min"], ["7200", "2 h"], ["86400", "24 h"]];

const state = {
  from: null,
  seconds: 600,
  only: null,
  view: "overview",
  revision: null,
  lastAt: 0,
  lastNewsAt: 0,
};
let history = null;
let charts = null;
let timer = 0;

const list = new SubscriberList();
const detail = { current: null };
const tree = new Tree((path) => detail.current?.show(path), list);
const changes = new Changes(() => update());
detail.current = new Detail(tree, list, {
  change: (path) => changes.openPlace(state.from, path),
  changeNode: (name) => changes.openNode(name),
  changeSubscriber: (id) => changes.openSubscriber(id),
  openSubscriber: (id) => {
    subscribers?.open(id);
    chooseView("subscribers");
  },
  focus: (path) => showOnly(path),
});
let subscribers = null;
let flows = null;

/** The name of a class in the charts. */
function nameOf(path) {
  if (path === "root") return "all";
  const subscriber = list.of(path);
  if (subscriber) return harmless(wholeNameOf(subscriber));
  const place = tree.byPath?.get(path);
  if (place?.name) return harmless(place.name);
  const kind = place?.discipline;
  return harmless([path, kind].filter(Boolean).join(" "));
}

/** Several workers have a tree each, below one root: classes are summed up over them. */
function merged(classes) {
  const root = classes.find((figures) => figures.class === "root");
  if (root?.discipline !== "sharded") return new Map(classes.map((figures) => [figures.class, figures]));
  const sums = new Map([["root", root]]);
  for (const figures of classes) {
    const path = figures.class.split("/").slice(1).join("/");
    if (!path) continue;
    const sum = sums.get(path);
    if (!sum) {
      sums.set(path, { ...figures });
      continue;
    }
    const [one, other] = [sum.packets_per_s, figures.packets_per_s];
    if (one + other > 0) sum.delay_ms = ((sum.delay_ms ?? 0) * one + (figures.delay_ms ?? 0) * other) / (one + other);
    for (const [name, value] of Object.entries(figures)) {
      if (typeof value !== "number" || name === "delay_ms") continue;
      // Percentiles of all workers can't be told from those of each: the highest one is above.
      if (HIGHEST.includes(name)) sum[name] = Math.max(sum[name] ?? 0, value);
      else sum[name] += value;
    }
  }
  return sums;
}

/** What is said below the mean delay of the root: its percentiles, or what it is the mean of. */
function belowMean({ seconds }, root) {
  if (!seconds || !root) return "";
  const { p95_ms: p95, p99_ms: p99 } = root;
  return p95 === null ? `over ${format.duration(seconds)}` : `p95 ${format.delay(p95)} · p99 ${format.delay(p99)}`;
}

function showTiles(document) {
  const [root] = document.classes;
  const now = (name, show) => (root ? show(root[name]) : format.none);
  const since = document.sojourn;
  const micros = (value) => (since.packets ? format.delay(value / 1000) : format.none);
  byId("tiles").replaceChildren(...terms([
    ["Rate", now("rate_bps", format.rate), `${now("packets_per_s", format.perSecond)} packets/s`],
    ["Mean delay", now("delay_ms", format.delay), belowMean(document, root)],
    ["Drops", `${now("dropped_per_s", format.perSecond)}/s`, `${now("marked_per_s", format.perSecond)} marks/s`],
    ["Waiting", now("backlog_bytes", format.bytes), `${now("backlog_packets", format.count)} packets`],
    ["Median delay since the start", micros(since.p50_us), `p95 ${micros(since.p95_us)} · p99 ${micros(since.p99_us)}`],
  ]));
}

/** Since when nodes have been full without a break, by their name, ms. */
let fullSince = new Map();

/** Returns the nodes that have been full for so long that it is no burst. */
function overloaded(nodes, now) {
  fullSince = new Map(fullNodes(nodes).map(({ name }) => [name, fullSince.get(name) ?? now]));
  return [...fullSince].filter(([, since]) => now - since >= OVERLOAD_MS)
    .map(([name, since]) => `${harmless(name)} (for ${format.duration((now - since) / 1000)})`);
}

/** Says where the run does not do what its file says, and what is overloaded. */
function showWarnings({ fallback, nodes, passed_by: { times, seconds } }) {
  const texts = [];
  const full = overloaded(nodes, performance.now());
  if (full.length) texts.push(`All of the rate is in use: ${full.join(", ")}.`);
  if (fallback) texts.push(`Not what the file says: ${harmless(fallback)}`);
  if (times) {
    const often = times === 1 ? "once" : `${format.count(times)} times`;
    texts.push(`Packets went past this run, unshaped: ${often}, for ${format.delay(seconds * 1000)} in all.`);
  }
  warningTexts(texts);
}

async function loadTree(revision) {
  const { document } = await api.getTagged("/v1/outline", { from: state.from });
  await loadSubscribers();
  tree.setPlaces(document.places);
  detail.current.show(tree.chosen);
  state.revision = revision;
}

/** Reads the list of subscribers. A reload may have brought one, or taken it away. */
async function loadSubscribers() {
  const { subscribers: isThere, may_change: mayChange } = await api.get("/v1/health");
  list.mayChange = mayChange;
  byId("tab-subscribers").hidden = !isThere;
  if (isThere) await list.load();
  else list.clear();
  if (!isThere && state.view === "subscribers") chooseView("overview");
}

function setHealth(text, kind) {
  setText(byId("health"), text);
  byId("health").dataset.state = kind;
}

/** Says whether the run is read: the time of its last reading goes on. */
function watch(at) {
  const now = performance.now();
  if (at !== state.lastAt) {
    state.lastAt = at;
    state.lastNewsAt = now;
  }
  const silence = (now - state.lastNewsAt) / 1000;
  // A reading of a large tree is made less often.
  if (silence < 30) setHealth(`up ${format.duration(at)}`, "good");
  else setHealth(`silent for ${format.duration(silence)}`, "bad");
}

async function update() {
  const { from } = state;
  const document = await api.get("/v1/classes", { from, limit: MOST_CLASSES });
  if (from !== state.from) return;
  if (document.revision !== state.revision) await loadTree(document.revision);
  watch(document.at_s);
  setText(byId("revision"), String(document.revision));
  showTiles(document);
  showWarnings(document);
  tree.setFigures(merged([...document.classes, ...document.nodes]));
  detail.current.update();
  if (state.view === "overview") await Promise.all([updateCharts(), detail.current.readRoundTrips(from)]);
  else if (state.view === "subscribers") await subscribers.update(from);
  else await flows.update(from);
  alertText(null);
}

async function updateCharts() {
  const shown = history;
  try {
    await shown.update();
  } catch (error) {
    // The class is gone.
    if (error.status !== 404 || !shown.only) throw error;
    showOnly(null);
    return;
  }
  if (shown === history) charts.show(history);
}

/** Reads all that is shown, again and again, as long as the page is seen. */
async function turn() {
  clearTimeout(timer);
  // A tab may be chosen before the run has answered for the first time.
  if (document.hidden || !history) return;
  try {
    await update();
  } catch (error) {
    setHealth(error.status === 0 ? "no answer" : "trouble", "bad");
    alertText(error.message);
  }
  timer = setTimeout(turn, INTERVAL_MS);
}

function restart() {
  history = new History(state.from, state.seconds, state.only);
  byId("all-classes").hidden = !state.only;
  setText(byId("all-classes"), state.only ? `Only ${nameOf(state.only)}. Show all classes` : "");
  turn();
}

function showOnly(path) {
  state.only = path;
  restart();
}

function chooseDirection(from) {
  state.from = from;
  state.only = null;
  fullSince = new Map();
  state.revision = null;
  restart();
}

function chooseView(view) {
  state.view = view;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isChosen = tab.id === `tab-${view}`;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !isChosen;
  }
  turn();
}

/** The tabs: a click or the arrow keys. */
function makeTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const tab of tabs) {
    tab.addEventListener("click", () => chooseView(tab.id.slice(4)));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const seen = tabs.filter((other) => !other.hidden);
      const next = seen[(seen.indexOf(tab) + step + seen.length) % seen.length];
      next.focus();
      chooseView(next.id.slice(4));
    });
  }
}

async function begin() {
  api.onUnauthorized(askForToken);
  const [health, trees] = [await api.get("/v1/health"), await api.get("/v1/trees")];
  setText(byId("run-name"), health.name);
  document.title = `${harmless(health.name)} - Fairgate`;
  const words = health.subscribers ? { down: "Download, ", up: "Upload, " } : {};
  const directions = trees.directions.map(({ from, to, name }) => [from, `${words[name] ?? ""}${from} → ${to}`]);
  [[state.from]] = directions;
  segments(byId("directions"), "direction", directions, state.from, chooseDirection);
  segments(byId("ranges"), "range", RANGES, String(state.seconds), (seconds) => {
    state.seconds = Number(seconds);
    restart();
  });
  byId("all-classes").addEventListener("click", () => showOnly(null));
  charts = new Charts(nameOf);
  flows = new Flows();
  const sides = Object.fromEntries(trees.directions.map(({ from, name }) => [name, from]));
  subscribers = new Subscribers(list, sides, {
    change: (id) => changes.openSubscriber(id),
    changeAll: (ids) => changes.openSubscribers(ids),
    showInTree: (path) => {
      chooseView("overview");
      tree.reveal(path);
      byId("detail").focus();
    },
  });
  if (health.packets) offer(() => state.from, health.may_change);
  document.addEventListener("visibilitychange", turn);
  restart();
}

/** Begins, and tries again if the run does not answer. */
async function start() {
  try {
    await begin();
  } catch (error) {
    setHealth("no answer", "bad");
    alertText(error.message);
    setTimeout(start, 3 * INTERVAL_MS);
  }
}

makeTabs();
start();
