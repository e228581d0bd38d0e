// Changes of a class: the parameters are written, the exact lines are shown, and only then they are sent. If
// somebody else has changed the trees since they were read, nothing is changed. What was changed can be undone.

import * as api from "./api.js";
import { byId, h, toast } from "./dom.js";
import { openDialog } from "./dialog.js";

/** Values are one word each. */
const quoted = (value) => (/\s/.test(value) ? `'${value}'` : value);

/** Returns what was edited: for each part of the place the words that make it, and those that undo it. */
function edited(form, changeable) {
  const lines = [];
  const inverse = [];
  changeable.forEach((part, at) => {
    const made = [];
    const undone = [];
    for (const parameter of part.parameters) {
      const field = form.elements.namedItem(`${at}.${parameter.name}`);
      const value = field.value.trim();
      const before = parameter.is_given ? parameter.value : "";
      if (value === before) continue;
      // A name without a value gets its default.
      made.push(`${parameter.name}=${quoted(value)}`);
      undone.push(`${parameter.name}=${quoted(before)}`);
    }
    if (!made.length) return;
    lines.push([part.words, ...made].join(" "));
    inverse.unshift([part.words, ...undone].join(" "));
  });
  return { lines, inverse };
}

function field(parameter, name) {
  const id = `parameter-${name}`;
  const hint = `${parameter.meaning} Allowed: ${parameter.allowed}.`;
  return h("div", { class: "field" },
    h("label", { for: id }, parameter.name),
    h("input", {
      id, name, type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      value: parameter.is_given ? parameter.value : "",
      placeholder: parameter.is_given ? "" : parameter.value,
      "aria-describedby": `${id}-hint`,
    }),
    h("p", { class: "muted small", id: `${id}-hint` }, hint));
}

/** The parameters of a part: those that were set and rates first, the others folded. */
function part(changeable, at) {
  const isFirst = (parameter) => parameter.is_given || parameter.unit === "rate";
  const fields = (list) => list.map((parameter) => field(parameter, `${at}.${parameter.name}`));
  const first = changeable.parameters.filter(isFirst);
  const others = changeable.parameters.filter((parameter) => !isFirst(parameter));
  const folded = others.length
    ? h("details", { open: first.length === 0 && at === 0 }, h("summary", {}, `${others.length} more parameters`),
      ...fields(others))
    : null;
  return h("fieldset", {}, h("legend", {}, changeable.title), ...fields(first), folded);
}

const mistakes = (error) => {
  const all = error.errors?.length ? error.errors : [{ message: error.message, help: "" }];
  return all.map(({ message, help }) => h("li", {}, message, help ? h("span", { class: "muted" }, ` ${help}`) : null));
};

export class Changes {
  /** `onChanged` is called after each change. */
  constructor(onChanged) {
    this.onChanged = onChanged;
    this.dialog = byId("change");
  }

  /** Opens the dialog for a place. */
  async open(from, path) {
    let read;
    try {
      read = await api.getTagged("/v1/outline/place", { from, path });
    } catch (error) {
      toast(error.message);
      return;
    }
    this.from = from;
    this.path = path;
    this.etag = read.etag;
    this.changeable = read.document.changeable;
    this.edit();
    if (!this.dialog.open) openDialog(this.dialog);
    this.form.querySelector("input")?.focus();
  }

  /** The first step: values are written. */
  edit() {
    const title = this.path === "root" ? "Change the root" : `Change class ${this.path}`;
    const note = h("p", { class: "bad", role: "alert", hidden: true });
    this.form ??= null;
    const form = h("form", {},
      h("h2", { id: "change-title" }, title),
      h("p", { class: "muted" }, `For packets that come from ${this.from}. An empty field gets its default. `
        + "Packets stay queued, and nothing is changed before you confirm it."),
      ...this.changeable.map(part), note,
      h("div", { class: "actions" },
        h("button", { type: "button", class: "quiet", onclick: () => this.dialog.close() }, "Cancel"),
        h("button", { type: "submit", class: "primary" }, "Review")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const change = edited(form, this.changeable);
      note.hidden = change.lines.length > 0;
      note.textContent = "Nothing is different yet.";
      if (change.lines.length) this.confirm(change);
    });
    this.form = form;
    this.dialog.replaceChildren(form);
  }

  /** The second step: the lines are shown. */
  confirm(change, undoing = false) {
    const problem = h("div", { role: "alert", class: "problem", hidden: true });
    const send = h("button", { type: "submit", class: "primary" }, undoing ? "Undo it" : "Make this change");
    const back = undoing
      ? h("button", { type: "button", class: "quiet", onclick: () => this.dialog.close() }, "Cancel")
      : h("button", { type: "button", class: "quiet", onclick: () => this.back() }, "Back");
    const form = h("form", {},
      h("h2", { id: "change-title" }, undoing ? "Undo the change?" : "Make this change?"),
      h("p", { class: "muted" }, `These lines are sent for packets that come from ${this.from}:`),
      h("pre", { tabindex: "0", "aria-label": "Lines that are sent" }, change.lines.join("\n")),
      problem,
      h("div", { class: "actions" }, back, send));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      send.disabled = true;
      try {
        await this.send(change, undoing);
      } catch (error) {
        this.explain(error, problem, send);
      }
    });
    this.dialog.replaceChildren(form);
    send.focus();
  }

  back() {
    this.dialog.replaceChildren(this.form);
    this.form.querySelector("input")?.focus();
  }

  async send({ lines, inverse }, undoing) {
    const { document: made, etag } = await api.change(this.from, lines, this.etag);
    this.dialog.close();
    this.onChanged();
    const dropped = made.dropped ? ` ${made.dropped} packets had no room any more.` : "";
    const text = `${undoing ? "Undone" : "Changed"}: revision ${made.revision}. Forwarding paused for `
      + `${made.pause_us.toFixed(0)} µs.${dropped}`;
    const { from, path } = this;
    const undo = h("button", {
      type: "button", class: "quiet", id: "undo", onclick: () => {
        Object.assign(this, { from, path, etag });
        this.confirm({ lines: inverse, inverse: lines }, true);
        openDialog(this.dialog);
      },
    }, "Undo");
    toast(text, undoing ? [] : [undo]);
  }

  /** Says why nothing was changed. After a change by somebody else, the place can be read again. */
  explain(error, problem, send) {
    problem.hidden = false;
    if (error.status === 412) {
      send.hidden = true;
      problem.replaceChildren(
        h("p", {}, h("b", {}, "Somebody else has changed the trees in the meantime. "),
          "Nothing was changed. Read the class again, and see whether the change still makes sense."),
        h("button", { type: "button", class: "primary", onclick: () => this.open(this.from, this.path) },
          "Read it again"));
      problem.querySelector("button").focus();
      return;
    }
    send.disabled = false;
    problem.replaceChildren(h("p", {}, "Nothing was changed:"), h("ul", {}, ...mistakes(error)));
  }
}
