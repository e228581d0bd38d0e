// Changes of a class, a subscriber or a node: values are written, then what would be sent is shown with whose it is,
// and only then it is sent. If somebody else has changed it since it was read, nothing is changed. What was
// changed can be undone.

import * as api from "./api.js";
import { byId, h, terms, toast } from "./dom.js";
import { openDialog } from "./dialog.js";
import { nameOf } from "./list.js";

/** Values are one word each. */
const quoted = (value) => (/\s/.test(value) ? `'${value}'` : value);

/**
 * What can be changed. `read` returns it anew, `about` makes what is said of it in both steps, `fields` makes
 * the form, and `edited` returns the change that a form makes: the text that is shown, what sends it, and the
 * change that undoes it. It returns nothing if nothing is different.
 */
async function readPlace(from, path) {
  const { document, etag } = await api.getTagged("/v1/outline/place", { from, path });
  const made = (lines, inverse) => ({
    text: lines.join("\n"),
    introduction: `These lines are sent for packets that come from ${from}:`,
    send: (match) => api.change(from, lines, match),
    inverse: inverse ? made(inverse) : null,
  });
  return {
    read: () => readPlace(from, path),
    etag,
    title: path === "root" ? "Change the root" : `Change class ${path}`,
    other: "the trees",
    note: `For packets that come from ${from}. An empty field gets its default. `
      + "Packets stay queued, and nothing is changed before you confirm it.",
    about: () => null,
    fields: () => document.changeable.map(part),
    edited(form) {
      const { lines, inverse } = edited(form, document.changeable);
      return lines.length ? made(lines, inverse) : null;
    },
  };
}

const RATES = [
  ["plan", "Plan", "The name of its plan. It gives the rates that are not written here."],
  ["down", "Down", "The most that it gets, like 100mbit."],
  ["up", "Up", "The most that it sends."],
  ["down_min", "Down, guaranteed", "What it gets in any case."],
  ["up_min", "Up, guaranteed", "What it may send in any case."],
];
const LABELS = Object.fromEntries(RATES);

/** How many of several subscribers are named. */
const LISTED = 8;

/** How long a limit lasts, in seconds, by the ends of what is written. */
const TIMES = { s: 1, min: 60, m: 60, h: 3600, d: 86400 };

/** Reads a time like 2h. Returns nothing if there is none, and NaN if it is not understood. */
function secondsOf(text) {
  if (!text) return null;
  const found = /^(\d+(?:\.\d+)?) *(s|min|m|h|d)$/.exec(text);
  return found ? Math.round(Number(found[1]) * TIMES[found[2]]) : Number.NaN;
}

const forATime = () => input("for_s", "For a time", "", "it stays",
  "How long Down and Up hold, like 30min or 2h. Then the rates of the list hold again.");

/**
 * Returns the change that gives subscribers rates for a time: nothing if none is written, and a complaint if that
 * can't be. `isOfTrees` says whether the tag of what was read is that of the trees.
 */
function limited(form, ids, members, isOfTrees) {
  const text = form.elements.namedItem("for_s").value.trim();
  const seconds = secondsOf(text);
  if (seconds === null) return null;
  if (Number.isNaN(seconds)) return { complaint: "Write a time like 30min or 2h." };
  const names = Object.keys(members);
  if (!names.length || names.some((name) => !["down", "up"].includes(name) || !members[name])) {
    return { complaint: "For a time only Down and Up can change: write one of them, and nothing else." };
  }
  const made = (time, patch, values, inverse) => ({
    text: `PATCH /v1/subscribers\n${JSON.stringify({ for_s: time, subscribers: ids.slice(0, LISTED).map((id) =>
      ({ id, ...patch })) })}${ids.length > LISTED ? `\n… and ${ids.length - LISTED} more` : ""}`,
    introduction: "This is sent:",
    values,
    send: (match) => api.patchSubscribers(ids.map((id) => ({ id, ...patch })), isOfTrees ? match : undefined, time),
    inverse,
  });
  const end = made(0, {}, [["For a time", "the rates of the list again"]], null);
  return made(seconds, members, [...names.map((name) => [LABELS[name], members[name]]), ["For a time", text]], end);
}

async function readSubscriber(id) {
  const { document, etag } = await api.getSubscriber(id);
  const { subscriber } = document;
  const shown = (value) => value ?? "none of its own";
  const made = (members, before, isInverse) => ({
    text: `PATCH ${api.subscriberPath(id)}\n${JSON.stringify(members, null, 1).replace(/\n */g, " ")}`,
    introduction: "This is sent:",
    values: Object.keys(members).map((name) => [LABELS[name], `${shown(before[name])} → ${shown(members[name])}`]),
    send: (match) => api.patchSubscriber(id, members, match),
    inverse: isInverse ? null : made(before, members, true),
  });
  return {
    read: () => readSubscriber(id),
    etag,
    title: `Change subscriber ${nameOf(subscriber)}`,
    other: "this subscriber",
    note: "The list of subscribers decides about both directions. An empty field comes from the plan. "
      + "Packets stay queued, and nothing is changed before you confirm it. The change is written into the file of "
      + "the list, so that it stays.",
    about: () => h("dl", { class: "settings who" }, ...terms([
      ["Name", subscriber.name ?? "none"],
      ["Identifier", subscriber.id],
      ["Addresses", subscriber.prefixes.join(", ") || "none"],
    ])),
    fields: () => [
      ...RATES.map(([name, label, hint]) => input(name, label, subscriber[name] ?? "", "none of its own", hint)),
      forATime(),
    ],
    edited(form) {
      const [members, before] = [{}, {}];
      for (const [name] of RATES) {
        const value = form.elements.namedItem(name).value.trim() || null;
        const old = subscriber[name] ?? null;
        if (value === old) continue;
        [members[name], before[name]] = [value, old];
      }
      const change = limited(form, [id], members, false);
      return change ?? (Object.keys(members).length ? made(members, before, false) : null);
    },
  };
}

/** Several subscribers: a field that stays empty changes nothing. */
async function readSubscribers(ids) {
  const { document, etag } = await api.getTagged("/v1/subscribers");
  const wanted = new Set(ids);
  const chosen = document.subscribers.filter((entry) => wanted.has(entry.id));
  const made = (patches, members, isInverse) => ({
    text: `PATCH /v1/subscribers\n${JSON.stringify(patches.slice(0, LISTED), null, 1).replace(/\n */g, " ")}`
      + (patches.length > LISTED ? `\n… and ${patches.length - LISTED} more` : ""),
    introduction: "This is sent, for all of them or for none:",
    values: Object.keys(members).map((name) =>
      [LABELS[name], isInverse ? "as before" : members[name] ?? "that of the plan"]),
    send: (match) => api.patchSubscribers(patches, match),
    inverse: isInverse ? null : made(chosen.map((entry) => ({ id: entry.id,
      ...Object.fromEntries(Object.keys(members).map((name) => [name, entry[name] ?? null])) })), members, true),
  });
  const names = chosen.slice(0, LISTED).map(nameOf).join(", ");
  return {
    read: () => readSubscribers(ids),
    etag,
    title: `Change ${chosen.length} subscribers`,
    other: "the subscribers",
    note: "A field that stays empty changes nothing. All of them change, or none. The change is written into the file "
      + "of the list, so that it stays.",
    about: () => h("dl", { class: "settings who" }, ...terms([
      ["Subscribers", names + (chosen.length > LISTED ? ` and ${chosen.length - LISTED} more` : "")],
    ])),
    fields: () => [
      ...RATES.map(([name, label, hint]) => input(name, label, "", "as it is", hint)),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "of_plan" }),
        " The plan decides: rates of their own that are not written here go"),
      forATime(),
    ],
    edited(form) {
      const members = {};
      for (const [name] of RATES) {
        const value = form.elements.namedItem(name).value.trim();
        if (value) members[name] = value;
        else if (name !== "plan" && form.elements.namedItem("of_plan").checked) members[name] = null;
      }
      const change = limited(form, chosen.map((entry) => entry.id), members, true);
      return change ?? (Object.keys(members).length ? made(chosen.map(({ id }) => ({ id, ...members })), members, false) : null);
    },
  };
}

/** A rate as the API takes it. */
const rateText = (bits) => {
  const [unit, divisor] = [["gbit", 1e9], ["mbit", 1e6], ["kbit", 1e3]].find(([, size]) => bits % size === 0) ?? ["bit", 1];
  return `${bits / divisor}${unit}`;
};

/** A node of the network: a site, an access point. */
async function readNode(name) {
  const { document, etag } = await api.getTagged("/v1/subscribers");
  const node = document.nodes.find((one) => one.name === name);
  if (!node) throw new Error(`There is no node ${name} any more.`);
  const made = (rates, before, isInverse) => ({
    text: `PATCH ${api.nodePath(name)}\n${JSON.stringify(rates, null, 1).replace(/\n */g, " ")}`,
    introduction: "This is sent:",
    values: Object.keys(rates).map((key) => [LABELS[key], `${before[key]} → ${rates[key]}`]),
    send: (match) => api.patchNode(name, rates, match),
    inverse: isInverse ? null : made(before, rates, true),
  });
  return {
    read: () => readNode(name),
    etag,
    title: `Change node ${name}`,
    other: "the trees",
    note: "What this site or access point sends at most, to the subscribers and from them. Packets stay queued, and "
      + "nothing is changed before you confirm it. The rates are written into network.json, so that they stay.",
    about: () => h("dl", { class: "settings who" }, ...terms([["Node", name], ["Below", node.above ?? "the line"]])),
    fields: () => [
      input("down", "Down", rateText(node.down_bps), "", "To the subscribers, like 200mbit."),
      input("up", "Up", rateText(node.up_bps), "", "From them."),
    ],
    edited(form) {
      const [rates, before] = [{}, {}];
      for (const key of ["down", "up"]) {
        const value = form.elements.namedItem(key).value.trim();
        const known = rateText(node[`${key}_bps`]);
        if (!value) return { complaint: "A node needs both rates." };
        if (value === known) continue;
        [rates[key], before[key]] = [value, known];
      }
      return Object.keys(rates).length ? made(rates, before, false) : null;
    },
  };
}

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

function input(name, label, value, placeholder, hint) {
  const id = `parameter-${name}`;
  return h("div", { class: "field" },
    h("label", { for: id }, label),
    h("input", {
      id, name, type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      value, placeholder, "aria-describedby": `${id}-hint`,
    }),
    h("p", { class: "muted small", id: `${id}-hint` }, hint));
}

function field(parameter, name) {
  const hint = `${parameter.meaning} Allowed: ${parameter.allowed}.`;
  const [value, placeholder] = parameter.is_given ? [parameter.value, ""] : ["", parameter.value];
  return input(name, parameter.name, value, placeholder, hint);
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
  openPlace(from, path) {
    return this.open(() => readPlace(from, path));
  }

  /** Opens the dialog for a subscriber. */
  openSubscriber(id) {
    return this.open(() => readSubscriber(id));
  }

  /** Opens the dialog for a node of the network. */
  openNode(name) {
    return this.open(() => readNode(name));
  }

  /** Opens the dialog for several subscribers. */
  openSubscribers(ids) {
    return this.open(() => readSubscribers(ids));
  }

  async open(read) {
    try {
      this.subject = await read();
    } catch (error) {
      toast(error.message);
      return;
    }
    this.edit();
    if (!this.dialog.open) openDialog(this.dialog);
    this.form.querySelector("input")?.focus();
  }

  /** The first step: values are written. */
  edit() {
    const { subject } = this;
    const note = h("p", { class: "bad", role: "alert", hidden: true });
    const form = h("form", {},
      h("h2", { id: "change-title" }, subject.title),
      subject.about(),
      h("p", { class: "muted" }, subject.note),
      ...subject.fields(), note,
      h("div", { class: "actions" },
        h("button", { type: "button", class: "quiet", onclick: () => this.dialog.close() }, "Cancel"),
        h("button", { type: "submit", class: "primary" }, "Review")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const change = subject.edited(form);
      note.hidden = Boolean(change) && !change.complaint;
      note.textContent = change?.complaint ?? "Nothing is different yet.";
      if (note.hidden) this.confirm(change);
    });
    this.form = form;
    this.dialog.replaceChildren(form);
  }

  /** The second step: whose it is and what is sent are shown. */
  confirm(change, undoing = false) {
    const problem = h("div", { role: "alert", class: "problem", hidden: true });
    const send = h("button", { type: "submit", class: "primary" }, undoing ? "Undo it" : "Make this change");
    const back = undoing
      ? h("button", { type: "button", class: "quiet", onclick: () => this.dialog.close() }, "Cancel")
      : h("button", { type: "button", class: "quiet", onclick: () => this.back() }, "Back");
    const form = h("form", {},
      h("h2", { id: "change-title" }, undoing ? "Undo the change?" : "Make this change?"),
      this.subject.about(),
      change.values ? h("dl", { class: "settings values" }, ...terms(change.values)) : null,
      h("p", { class: "muted" }, change.introduction),
      h("pre", { tabindex: "0", "aria-label": "What is sent" }, change.text),
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

  async send(change, undoing) {
    const { subject } = this;
    const { document: made, etag } = await change.send(subject.etag);
    this.dialog.close();
    this.onChanged();
    const dropped = made.dropped ? ` ${made.dropped} packets had no room any more.` : "";
    const text = `${undoing ? "Undone" : "Changed"}: revision ${made.revision}. Forwarding paused for `
      + `${made.pause_us.toFixed(0)} µs.${dropped}`;
    const undo = h("button", {
      type: "button", class: "quiet", id: "undo", onclick: () => {
        this.subject = { ...subject, etag };
        this.confirm(change.inverse, true);
        openDialog(this.dialog);
      },
    }, "Undo");
    toast(text, undoing ? [] : [undo]);
  }

  /** Says why nothing was changed. After a change by somebody else, it can be read again. */
  explain(error, problem, send) {
    const { subject } = this;
    problem.hidden = false;
    if (error.status === 412) {
      send.hidden = true;
      problem.replaceChildren(
        h("p", {}, h("b", {}, `Somebody else has changed ${subject.other} in the meantime. `),
          "Nothing was changed. Read it again, and see whether the change still makes sense."),
        h("button", { type: "button", class: "primary", onclick: () => this.open(subject.read) }, "Read it again"));
      problem.querySelector("button").focus();
      return;
    }
    send.disabled = false;
    problem.replaceChildren(h("p", {}, "Nothing was changed:"), h("ul", {}, ...mistakes(error)));
  }
}
