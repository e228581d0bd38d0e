// The history of a subscriber in both directions, as charts draw it: a series `down` and a series `up`.

import * as api from "./api.js";
import { LISTS } from "./history.js";

/** The figures of a class, and the lists of a history that they belong to. */
const FIGURES = {
  rate_bps: "rate_bps",
  delay_ms: "delay_ms",
  p95_ms: "highest_p95_ms",
  p99_ms: "highest_p99_ms",
  dropped_per_s: "dropped_per_s",
  marked_per_s: "marked_per_s",
  backlog_bytes: "backlog_bytes",
};

const emptySeries = (side) => ({ class: side, ...Object.fromEntries(LISTS.map((list) => [list, []])) });
const emptyDocument = () => ({ now_s: 0, at_s: [], step_s: 1, series: ["down", "up"].map(emptySeries) });

/** Returns a list of a history at the times of another one, whose steps are as long or longer: means. */
function onTimes(other, history, list) {
  const values = history?.series[0]?.[list] ?? [];
  let place = 0;
  return other.at_s.map((time) => {
    const inStep = [];
    for (; place < values.length && history.at_s[place] <= time; place += 1) {
      if (values[place] !== null) inStep.push(values[place]);
    }
    return inStep.length ? inStep.reduce((sum, value) => sum + value, 0) / inStep.length : null;
  });
}

export class Pair {
  /** `sides` are the interfaces that packets `down` and `up` come from. `seconds` is how far back it goes. */
  constructor(sides, id, seconds) {
    this.sides = sides;
    this.id = id;
    this.seconds = seconds;
    this.from = id;
    this.isPair = true;
    /** Whether it begins with this page: a class that sends little has no history in short steps. */
    this.isSampled = false;
    this.document = emptyDocument();
  }

  /** Reads both directions. Returns what the subscriber does now. */
  async update() {
    const now = await api.get(`/v1/subscribers/${encodeURIComponent(this.id)}/now`);
    // None where no packet has come to it.
    const figures = { down: now.down.figures, up: now.up.figures };
    // Another run counts from its own start.
    if (now.at_s < this.document.now_s) this.document = emptyDocument();
    this.document.now_s = now.at_s;
    this.isSampled = !(await this.readHistory(figures));
    if (this.isSampled) this.sample(figures);
    return now;
  }

  /** Reads what the run has kept. Returns whether it has something. */
  async readHistory(figures) {
    const read = {};
    for (const [side, from] of Object.entries(this.sides)) {
      if (!figures[side]) continue;
      try {
        read[side] = await api.get("/v1/history", { from, seconds: this.seconds, class: figures[side].class });
      } catch (error) {
        if (error.status !== 404) throw error;
      }
    }
    // The longer steps, if they differ: only the classes that send most have short ones.
    const [first] = Object.values(read).sort((one, other) => other.step_s - one.step_s);
    // Steps of five minutes show nothing of ten.
    if (!first || first.step_s > this.seconds / 4) return false;
    const series = ["down", "up"].map((side) => {
      const made = { class: side };
      for (const list of LISTS) made[list] = onTimes(first, read[side], list);
      return made;
    });
    this.document = { now_s: first.now_s, at_s: first.at_s, step_s: first.step_s, series };
    return true;
  }

  /** Adds the figures of now. */
  sample(figures) {
    const { document } = this;
    if (document.at_s.at(-1) === document.now_s) return;
    document.at_s.push(document.now_s);
    for (const series of document.series) {
      for (const [figure, list] of Object.entries(FIGURES)) series[list].push(figures[series.class]?.[figure] ?? null);
    }
    const old = document.at_s.findIndex((at) => at >= document.now_s - this.seconds);
    for (const list of [document.at_s, ...document.series.flatMap((series) => LISTS.map((name) => series[name]))]) {
      list.splice(0, old);
    }
  }

  /** Returns the times of the points as seconds since 1970. The clock of this machine is what counts. */
  times() {
    const offset = Date.now() / 1000 - this.document.now_s;
    return this.document.at_s.map((at) => at + offset);
  }
}
