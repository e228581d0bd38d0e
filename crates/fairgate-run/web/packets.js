// What the packet log has: a capture of the last packets, and what other disciplines would have done with them.

import * as api from "./api.js";
import { byId, h, toast } from "./dom.js";
import { openDialog, saveFile } from "./dialog.js";

const DEFAULT = ["fq_codel", "cake", "fifo"];

/**
 * Shows the buttons. `direction` returns the interface that the shown direction receives from. Who may only read
 * can't have disciplines compared: that is a request of its own, and takes the processor.
 */
export function offer(direction, mayChange) {
  byId("save-packets").hidden = false;
  byId("what-if").hidden = !mayChange;
  byId("save-packets").onclick = save;
  byId("what-if").onclick = () => ask(direction());
}

async function save() {
  const button = byId("save-packets");
  button.disabled = true;
  try {
    const name = new Date().toISOString().replaceAll(":", "").slice(0, 17);
    saveFile(await api.download("/v1/packets"), `fairgate-${name}.pcapng`);
  } catch (error) {
    toast(error.message);
  }
  button.disabled = false;
}

function ask(from) {
  const dialog = byId("what-if-dialog");
  const queues = h("textarea", { rows: "5", id: "what-if-queues", spellcheck: "false", autocapitalize: "off" });
  queues.value = DEFAULT.join("\n");
  const problem = h("p", { class: "bad", role: "alert", hidden: true });
  const send = h("button", { type: "submit", class: "primary" }, "Compare");
  const form = h("form", {},
    h("h2", { id: "what-if-title" }, "What would another discipline have done?"),
    h("p", { class: "muted" }, `The last packets from ${from} are sent through the tree as it is and through each of `
      + "these disciplines, one in each line, as on the command line: ", h("code", {}, "fifo limit=100"),
      ". No sender reacts to it."),
    h("label", { for: "what-if-queues" }, "Disciplines"), queues, problem,
    h("div", { class: "actions" },
      h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close"), send));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    problem.hidden = true;
    try {
      const wanted = queues.value.split("\n").map((line) => line.trim()).filter(Boolean);
      show(dialog, await api.post("/v1/what-if", { from, queues: wanted }));
    } catch (error) {
      byId("what-if").hidden = error.status === 404;
      problem.hidden = false;
      problem.textContent = error.message;
      send.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  openDialog(dialog);
  queues.focus();
}

/** What is left out of a report: all that could run, or be fetched. */
const LEFT_OUT = "script:not([type='text/css']), iframe, object, embed, link, meta, base, form, img, video, audio";

/**
 * Shows a report. It is a document with a style of its own, which the policy of this page forbids, also in a
 * frame or a tab that the page opens. So its content is shown here in a tree of its own (shadow DOM), with its
 * style given through the CSSOM. In the text, styles get other names, so that the browser does not try to apply
 * and report them.
 */
function show(dialog, html) {
  const renamed = html
    .replace(/<style\b[^>]*>/gi, "<script type='text/css'>")
    .replace(/<\/style>/gi, "</script>")
    .replace(/(\s)style=/gi, "$1data-style=");
  const report = new DOMParser().parseFromString(renamed, "text/html");
  for (const element of report.querySelectorAll(LEFT_OUT)) element.remove();
  const sheet = new CSSStyleSheet();
  const styles = [...report.querySelectorAll("script")];
  const css = styles.map((style) => style.textContent).join("\n");
  sheet.replaceSync(css.replace(/(:root|\bbody|\bhtml)\b/g, ":host"));
  styles.forEach((style) => style.remove());
  for (const element of report.body.querySelectorAll("*")) {
    for (const { name } of [...element.attributes]) {
      if (name.startsWith("on")) element.removeAttribute(name);
    }
  }
  const host = h("div", { class: "report", tabindex: "0", role: "region", "aria-label": "The report" });
  const tree = host.attachShadow({ mode: "open" });
  tree.adoptedStyleSheets = [sheet];
  tree.append(...report.body.childNodes);
  for (const element of tree.querySelectorAll("[data-style]")) element.style.cssText = element.dataset.style;
  const keep = () => saveFile(new Blob([html], { type: "text/html" }), "fairgate-what-if.html");
  dialog.replaceChildren(
    h("div", { class: "card-head" }, h("h2", { id: "what-if-title" }, "What other disciplines would have done")),
    host,
    h("div", { class: "actions" },
      h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close"),
      h("button", { type: "button", class: "primary", onclick: keep }, "Save the report")));
  host.focus();
}
