// The charts of a direction: rate, delay, drops and marks of its classes. Each has a table that says the same.

import { byId, h, named, setText } from "./dom.js";
import * as format from "./format.js";

/* global uPlot */

const CHARTS = [
  {
    id: "rate",
    title: "Rate",
    unit: "what left, by class",
    figure: "rate_bps",
    show: format.rate,
    stacked: true,
  },
  {
    id: "delay",
    title: "Delay",
    unit: "mean time in the tree; dashed: p95",
    // That of a longer step can't be told from those of its seconds.
    unitOfLongSteps: "mean time in the tree; dashed: highest p95",
    figure: "delay_ms",
    beside: "highest_p95_ms",
    show: format.delay,
  },
  { id: "drops", title: "Drops", unit: "packets in each second; dashed: marks of all", figure: "dropped_per_s", show: format.perSecond },
];
const ROWS = 12;
const COLOURS = 8;
/** The shortest time that is shown, seconds. */
const LEAST_S = 10;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const faded = (colour, share) => `${colour}${Math.round(share * 255).toString(16).padStart(2, "0")}`;

/** The colour of the class at this place. What is in no class of its own is grey. */
const colourOf = (place, count, hasOther) =>
  hasOther && place === count - 1 ? css("--series-other") : css(`--series-${place % COLOURS}`);

/** Returns the rest that the shown classes leave of the root. */
function rest(root, shown, figure) {
  return root[figure].map((all, at) => {
    if (all === null) return null;
    return Math.max(0, all - shown.reduce((sum, series) => sum + (series[figure][at] ?? 0), 0));
  });
}

/** Returns the series that charts show, from the document of the history. */
function shownSeries(history, nameOf) {
  const [root, ...classes] = history.document.series;
  // Two directions are no parts of a whole.
  if (history.isPair) {
    return { list: history.document.series.map((series) => ({ ...series, name: nameOf(series.class) })), hasOther: false };
  }
  if (history.only || !classes.length) {
    return { list: [{ ...root, name: nameOf(root.class) }], hasOther: false };
  }
  const list = classes.map((series) => ({ ...series, name: nameOf(series.class) }));
  const other = rest(root, classes, "rate_bps");
  // Readings of a large tree are not made at one moment: a small rest is none.
  const hasOther = other.some((value, at) => value > 0.02 * root.rate_bps[at] && value > 10_000);
  if (hasOther) {
    const missing = other.map(() => null);
    list.push({
      class: "other",
      name: "other classes",
      rate_bps: other,
      delay_ms: missing,
      highest_p95_ms: missing,
      dropped_per_s: rest(root, classes, "dropped_per_s"),
      marked_per_s: rest(root, classes, "marked_per_s"),
      backlog_bytes: missing,
    });
  }
  return { list, hasOther };
}

export class Charts {
  /**
   * `nameOf` returns the name of a class for people. The charts and their legend are made in these elements, and
   * the identifiers of charts begin with `prefix`.
   */
  constructor(nameOf, { charts, legend, prefix = "" } = { charts: byId("charts"), legend: byId("legend") }) {
    this.nameOf = nameOf;
    this.prefix = prefix;
    this.legend = legend;
    this.hidden = new Set();
    this.history = null;
    this.key = "";
    this.views = CHARTS.map((chart) => this.makeView(chart));
    charts.replaceChildren(...this.views.map((view) => view.element));
    new ResizeObserver(() => this.resize()).observe(charts);
    document.addEventListener("theme", () => this.rebuild());
  }

  makeView(chart) {
    const canvas = h("div", { class: "canvas", role: "img" });
    const tip = h("div", { class: "tip", "aria-hidden": "true" });
    const table = h("div", { class: "table-box", hidden: true, tabindex: "0", role: "region" });
    table.setAttribute("aria-label", `${chart.title} as a table`);
    const button = h("button", { type: "button", class: "quiet small", "aria-pressed": "false" }, "Show as table");
    const view = { chart, canvas, tip, table, button, plot: null };
    button.addEventListener("click", () => {
      const asTable = table.hidden;
      table.hidden = !asTable;
      canvas.hidden = asTable;
      button.setAttribute("aria-pressed", String(asTable));
      setText(button, asTable ? "Show as chart" : "Show as table");
      this.draw();
    });
    view.now = h("span", { class: "muted small" });
    view.unit = h("small", { class: "muted" }, chart.unit);
    view.element = h("figure", { class: "card chart", id: `${this.prefix}chart-${chart.id}` },
      h("figcaption", { class: "card-head" },
        h("h2", {}, chart.title, " ", view.unit), view.now, button),
      canvas, table);
    canvas.append(tip);
    return view;
  }

  /** Shows another history, or what is new in it. */
  show(history) {
    this.history = history;
    this.draw();
  }

  /** Draws everything anew, for example in other colours. */
  rebuild() {
    this.key = "";
    this.draw();
  }

  draw() {
    // Nothing has been read yet, or the run not often enough for a point.
    if (!this.history?.document?.series.length) return;
    const { list, hasOther } = shownSeries(this.history, this.nameOf);
    const times = this.history.times();
    this.first = times[0] ?? Infinity;
    const key = `${this.history.from} ${list.map((series) => `${series.class} ${series.name}`).join()}`;
    const isNew = key !== this.key;
    this.key = key;
    const colours = list.map((_, place) => colourOf(place, list.length, hasOther));
    if (isNew) this.drawLegend(list, colours);
    this.updateLegend(list);
    for (const view of this.views) {
      const { chart } = view;
      const visible = list.filter((series) => !this.hidden.has(series.class));
      const drops = chart.id === "drops";
      const lines = visible.map((series) => ({
        series,
        name: series.name,
        colour: colours[list.indexOf(series)],
        values: series[chart.figure],
      }));
      if (chart.beside) {
        for (const line of lines) line.beside = line.series[chart.beside];
        lines.push(...lines.filter((line) => line.series.class !== "other").map((line) => (
          { name: `${line.name} p95`, colour: line.colour, values: line.beside, dashed: true, isBeside: true })));
        const isLong = this.history.document.step_s > 1;
        setText(view.unit, isLong ? chart.unitOfLongSteps : chart.unit);
      }
      if (drops) lines.push({ name: "marked, all", colour: css("--muted"), values: sum(visible), dashed: true });
      if (isNew || !view.plot || view.lines !== lines.length) this.makePlot(view, lines);
      view.lines = lines.length;
      view.raw = lines;
      if (!view.canvas.hidden) {
        const data = this.isStacked(chart) ? stack(lines) : lines.map((line) => line.values);
        view.plot.setData([times, ...data]);
      }
      this.describe(view, lines, times);
    }
  }

  isStacked(chart) {
    return chart.stacked && !this.history.isPair;
  }

  makePlot(view, lines) {
    view.plot?.destroy();
    const { chart } = view;
    const isStacked = this.isStacked(chart);
    const grid = { stroke: css("--line"), width: 1 };
    const axis = { stroke: css("--muted"), grid, ticks: { show: false }, font: `12px ${css("--font")}` };
    const series = lines.map((line) => ({
      label: line.name,
      stroke: line.colour,
      width: isStacked || line.isBeside ? 1 : 1.75,
      dash: line.dashed ? [5, 4] : undefined,
      fill: isStacked ? faded(line.colour, 0.28) : undefined,
      // Where no packet left there is no delay, and before a class was there nothing is known of it.
      spanGaps: false,
      points: { show: false, filter: (plot, place) => lonely(plot.data[place]), size: 3, fill: line.colour },
    }));
    // A stacked class fills the space down to the one below it.
    const bands = isStacked ? lines.slice(1).map((_, place) => ({ series: [place + 2, place + 1] })) : [];
    const range = () => {
      const now = Date.now() / 1000;
      // A young run has the whole width, too.
      const first = Math.min(this.first, now - LEAST_S);
      return [Math.max(now - this.history.seconds, first), now];
    };
    const fine = () => this.history.seconds <= 600;
    view.plot = new uPlot({
      width: view.canvas.clientWidth || 300,
      height: 190,
      // The last time of day is written half behind the end of the axis.
      padding: [8, 30, 0, 0],
      legend: { show: false },
      cursor: { y: false, sync: { key: "fairgate" }, points: { size: 6 }, drag: { x: false, y: false } },
      scales: {
        x: { range },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((tick) => format.clock(tick, fine())), space: 80, size: 30 },
        { ...axis, values: (_, ticks) => ticks.map((tick) => chart.show(tick)), size: 76, space: 34 },
      ],
      series: [{}, ...series],
      bands,
      hooks: { setCursor: [(plot) => this.moveTip(view, plot)] },
    }, [[], ...lines.map(() => [])], view.canvas);
  }

  /** The values at the cursor, beside it. */
  moveTip(view, plot) {
    const { tip } = view;
    const at = plot.cursor.idx;
    if (at === null || at === undefined || plot.cursor.left < 0 || !view.raw) {
      delete tip.dataset.shown;
      return;
    }
    const rows = view.raw.filter((line) => !line.isBeside).map((line) => {
      const swatch = h("i", { class: "swatch" });
      swatch.style.background = line.colour;
      return h("div", {}, swatch, named(line.name),
        h("b", { class: "number" }, valueAt(view.chart, line, at)));
    });
    tip.replaceChildren(h("div", { class: "muted" }, format.clock(plot.data[0][at])), ...rows);
    tip.dataset.shown = "yes";
    const left = plot.bbox.left / devicePixelRatio + plot.cursor.left;
    const width = view.canvas.clientWidth;
    const isRight = left > width / 2;
    tip.style.left = isRight ? "" : `${left + 14}px`;
    tip.style.right = isRight ? `${width - left + 14}px` : "";
  }

  /** Says in words and in a table what a chart shows. */
  describe(view, lines, times) {
    const { chart } = view;
    const latest = lines.filter((line) => !line.isBeside).map((line) => `${line.name} ${valueAt(chart, line, -1)}`);
    view.canvas.setAttribute("aria-label",
      `${chart.title} over the last ${format.duration(this.history.seconds)}. Now: ${latest.join(", ") || "nothing"}.`);
    if (view.table.hidden) return;
    const step = Math.max(1, Math.floor(times.length / ROWS));
    const places = [];
    for (let at = times.length - 1; at >= 0 && places.length < ROWS; at -= step) places.push(at);
    const cell = (line, at) => h("td", { class: "number" }, chart.show(line.values[at]));
    view.table.replaceChildren(h("table", {},
      h("caption", { class: "visually-hidden" }, `${chart.title}, ${chart.unit}, newest first`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Time"),
        ...lines.map((line) => h("th", { scope: "col", class: "number" }, named(line.name))))),
      h("tbody", {}, ...places.map((at) => h("tr", {},
        h("th", { scope: "row" }, format.clock(times[at])),
        ...lines.map((line) => cell(line, at)))))));
  }

  drawLegend(list, colours) {
    this.legend.replaceChildren(...list.map((series, place) => {
      const swatch = h("i", { class: "swatch" });
      swatch.style.background = colours[place];
      const button = h("button", { type: "button", "aria-pressed": String(!this.hidden.has(series.class)) }, swatch,
        named(series.name), h("b", { class: "number" }));
      button.addEventListener("click", () => {
        if (!this.hidden.delete(series.class)) this.hidden.add(series.class);
        button.setAttribute("aria-pressed", String(!this.hidden.has(series.class)));
        this.rebuild();
      });
      return h("li", {}, button);
    }));
  }

  updateLegend(list) {
    const values = this.legend.querySelectorAll("b");
    list.forEach((series, place) => setText(values[place], format.rate(series.rate_bps.at(-1))));
  }

  resize() {
    for (const { plot, canvas } of this.views) {
      if (plot && canvas.clientWidth) plot.setSize({ width: canvas.clientWidth, height: 190 });
    }
  }
}

/** A value as text, with the percentile beside it. */
function valueAt(chart, line, at) {
  const beside = line.beside?.at(at);
  const text = chart.show(line.values.at(at));
  return typeof beside === "number" ? `${text}, p95 ${chart.show(beside)}` : text;
}

/** The places of values between two gaps: no line shows them. */
function lonely(values) {
  const isThere = (at) => typeof values[at] === "number";
  const places = [...values.keys()].filter((at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1));
  return places.length ? places : null;
}

function sum(list) {
  const [first] = list;
  if (!first) return [];
  const isKnown = (at) => list.some((series) => series.marked_per_s[at] !== null);
  const all = (at) => list.reduce((sum, series) => sum + (series.marked_per_s[at] ?? 0), 0);
  return first.marked_per_s.map((_, at) => (isKnown(at) ? all(at) : null));
}

/** Puts each class on top of those before it. */
function stack(lines) {
  let below = null;
  // Of the time between two runs nothing is known.
  const isKnown = (at) => lines.some((line) => line.values[at] !== null);
  return lines.map((line) => {
    below = line.values.map((value, at) => (isKnown(at) ? (value ?? 0) + (below ? below[at] : 0) : null));
    return below;
  });
}
