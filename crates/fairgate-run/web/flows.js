// The flows of the run, with their round trip times: GET /v1/flows.

import * as api from "./api.js";
import { byId, h, named, segments, setText } from "./dom.js";
import * as format from "./format.js";
import { wholeNameOf } from "./list.js";

const SORTS = [["rate", "Rate"], ["round_trip", "Round trip"], ["delay", "Delay"], ["dropped", "Drops"]];

const address = (host, port) => (port ? (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`) : host);

export class Flows {
  constructor() {
    this.sort = "rate";
    const sorts = h("div", { class: "segments", role: "radiogroup", "aria-label": "Sort by" });
    this.body = h("tbody");
    this.count = h("span", { class: "muted small" });
    const number = [["Rate", "rate"], ["RTT", ""], ["Delay", "medium"], ["Drops", "count"]];
    byId("flows").replaceChildren(h("section", { class: "card", "aria-labelledby": "flows-title" },
      h("div", { class: "card-head" }, h("h2", { id: "flows-title" }, "Flows"), this.count, sorts),
      h("table", { class: "grid" },
        h("caption", { class: "visually-hidden" }, "Flows of this direction"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From and to"), h("th", { scope: "col", class: "wide text" },
          "Class or subscriber"), ...number.map(([name, kind]) =>
          h("th", { scope: "col", class: `number ${kind}`.trim() }, name)),
        h("th", { scope: "col", class: "number wide" }, "Age"))),
        this.body),
      h("p", { class: "muted small" }, "RTT is the median round trip that the time stamps of TCP show in passing; "
        + "below it the least one.")));
    segments(sorts, "flow-sort", SORTS, this.sort, (sort) => {
      this.sort = sort;
      this.update();
    });
  }

  /** Reads the flows of a direction. */
  async update(from = this.from) {
    this.from = from;
    const document = await api.get("/v1/flows", { limit: 200, sort: this.sort });
    const flows = document.flows.filter((flow) => flow.from === from).slice(0, 100);
    const lost = document.missed_packets ? `, ${format.count(document.missed_packets)} packets not seen` : "";
    setText(this.count, `${format.count(document.active)} active${lost}`);
    const whose = ({ subscriber, class: path }) => (subscriber ? named(wholeNameOf(subscriber)) : path || "root");
    this.body.replaceChildren(...flows.map((flow) => flowRow(flow, whose(flow))));
  }
}

/** Makes the row of a flow. `what` is said of it beside its ends. */
export function flowRow(flow, what) {
  const rtt = flow.round_trip_ms;
  return h("tr", {},
    h("th", { scope: "row", class: "ends" },
      h("span", { class: "number" }, address(flow.source, flow.source_port)),
      h("span", { class: "number" }, h("span", { class: "muted" }, " to "),
        address(flow.destination, flow.destination_port)),
      flow.lan ? h("span", { class: "number muted" }, ` (${address(flow.lan.address, flow.lan.port)})`) : null,
      h("span", { class: "kind" }, flow.protocol)),
    h("td", { class: "wide number class" }, what),
    h("td", { class: "number" }, format.rate(flow.rate_bps)),
    h("td", { class: "number" }, rtt ? format.delay(rtt.median) : format.none,
      rtt ? h("small", {}, format.delay(rtt.minimum)) : null),
    h("td", { class: "number medium" }, format.delay(flow.delay_ms)),
    h("td", { class: flow.dropped ? "number bad" : "number" }, format.count(flow.dropped)),
    h("td", { class: "number wide" }, format.duration(flow.age_s)));
}
