// The history of a direction as the API has it, kept up to date with what is new.

import { get } from "./api.js";

export const LISTS = [
  "rate_bps", "delay_ms", "highest_p95_ms", "highest_p99_ms", "dropped_per_s", "marked_per_s", "backlog_bytes",
];

export class History {
  /** `seconds` is how far back it goes. With `only` it has one class. */
  constructor(from, seconds, only = null) {
    this.from = from;
    this.seconds = seconds;
    this.only = only;
    this.document = null;
  }

  /** Reads what is new. Returns whether anything is. */
  async update() {
    const known = this.document;
    const last = known?.at_s.at(-1);
    const asked = { from: this.from, seconds: this.seconds, class: this.only, after: last };
    const news = await get("/v1/history", asked);
    const names = (document) => document.series.map((series) => series.class).join(" ");
    // Another run counts from its own start.
    const isSameRun = known && news.now_s >= known.now_s;
    const fits = isSameRun && names(known) === names(news) && known.step_s === news.step_s;
    if (known && !fits) {
      // Other classes are the busiest ones now, the steps have become longer, or the run was started anew.
      this.document = await get("/v1/history", { ...asked, after: undefined });
      return true;
    }
    if (!known) {
      this.document = news;
      return true;
    }
    known.now_s = news.now_s;
    if (!news.at_s.length) return false;
    this.append(news);
    return true;
  }

  append(news) {
    const known = this.document;
    known.at_s.push(...news.at_s);
    const old = known.at_s.findIndex((at) => at >= known.now_s - this.seconds);
    known.at_s.splice(0, old);
    known.series.forEach((series, place) => {
      for (const list of LISTS) {
        series[list].push(...news.series[place][list]);
        series[list].splice(0, old);
      }
    });
  }

  /** Returns the times of the points as seconds since 1970. The clock of this machine is what counts. */
  times() {
    const offset = Date.now() / 1000 - this.document.now_s;
    return this.document.at_s.map((at) => at + offset);
  }
}
