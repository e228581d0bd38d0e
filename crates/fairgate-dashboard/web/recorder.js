// What the packet recorder has: a capture of the last seconds, and what other disciplines would have done with
// these packets.

import * as api from "./api.js";
import { byId, h, toast } from "./dom.js";
import { openDialog, saveFile } from "./dialog.js";

const DEFAULT = ["fq_codel", "cake", "fifo"];

/** Shows the buttons of what this run offers. */
export async function offer() {
  const [records, judges] = [await api.has("/v1/recording"), await api.has("/v1/what-if")];
  byId("save-recording").hidden = !records;
  byId("what-if").hidden = !judges;
  byId("save-recording").onclick = save;
  byId("what-if").onclick = ask;
}

async function save() {
  const button = byId("save-recording");
  button.disabled = true;
  try {
    const name = new Date().toISOString().replaceAll(":", "").slice(0, 17);
    saveFile(await api.download("/v1/recording"), `fairgate-${name}.pcapng`);
  } catch (error) {
    // The run keeps no packets.
    button.hidden = error.status === 404;
    toast(error.message);
  }
  button.disabled = false;
}

function ask() {
  const dialog = byId("what-if-dialog");
  const queues = h("textarea", { rows: "5", id: "what-if-queues", spellcheck: "false", autocapitalize: "off" });
  queues.value = DEFAULT.join("\n");
  const problem = h("p", { class: "bad", role: "alert", hidden: true });
  const send = h("button", { type: "submit", class: "primary" }, "Compare");
  const form = h("form", {},
    h("h2", { id: "what-if-title" }, "What would another discipline have done?"),
    h("p", { class: "muted" }, "The packets of the last seconds are sent through each of these disciplines, one in "
      + "each line, as on the command line: ", h("code", {}, "cake bandwidth=20mbit"), "."),
    h("label", { for: "what-if-queues" }, "Disciplines"), queues, problem,
    h("div", { class: "actions" },
      h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close"), send));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    problem.hidden = true;
    try {
      const wanted = queues.value.split("\n").map((line) => line.trim()).filter(Boolean);
      show(dialog, await api.post("/v1/what-if", { queues: wanted }));
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
