// The explorer of a schedule: draws the model's `view`, sends what is clicked as messages. See explorer.py.
// Each part of it is a custom element that draws itself again only where what it shows has changed.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "html") made.innerHTML = value; // lines that Python made, escaped there
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function scaled(count, units, step) {
  let at = 0;
  while (count >= step && at < units.length - 1) {
    count /= step;
    at += 1;
  }
  return `${Number(count.toPrecision(3))} ${units[at]}`;
}

const bytes = (count) => scaled(count, ["B", "kB", "MB", "GB"], 1000);
const duration = (seconds) => scaled(seconds * 1e9, ["ns", "µs", "ms", "s"], 1000);

// A sentence of a docstring, its names between double backticks as code.
function prose(text) {
  return text.split("``").map((part, n) => (n % 2 ? element("code", {}, part) : part));
}

// A part of the view: `needs` picks what it shows, `draw` makes its children of that. What has the focus (by `data-key`),
// and how far areas are scrolled (`data-scroll`), stay as they were.
class Part extends HTMLElement {
  needs(view) {
    return view;
  }

  update(view, context) {
    const data = this.needs(view, context);
    const key = JSON.stringify(data);
    if (key === this.key) return;
    this.key = key;
    const active = this.getRootNode().activeElement;
    const focused = active && this.contains(active) ? active.closest("[data-key]")?.dataset.key : undefined;
    const areas = () => [...this.querySelectorAll("[data-scroll]"), ...(this.dataset.scroll ? [this] : [])];
    const kept = new Map(areas().map((area) => [area.dataset.scroll, area.scrollTop]));
    this.replaceChildren(...this.draw(data, context).filter((child) => child));
    for (const area of areas()) area.scrollTop = kept.get(area.dataset.scroll) ?? 0;
    if (focused) [...this.querySelectorAll("[data-key]")].find((one) => one.dataset.key === focused)?.focus();
  }
}

// ------------------------------------------------------------------ the history

class History extends Part {
  needs({ at, last, redo, steps, runs, checks, expected, pending, title }) {
    return { at, last, redo, steps, runs, checks, expected, comes: !expected && pending > 0, title };
  }

  draw(view, { send, local }) {
    const button = (kind, words, message, more = {}) =>
      element("button", { class: `tir-${kind}`, "data-key": kind, onclick: () => send(message), ...more }, words);
    const slider = element("input", {
      type: "range", min: 0, max: view.last, value: view.at, "aria-label": "step of the history", class: "tir-slider",
      "aria-valuetext": view.steps[view.at], "data-key": "slider", disabled: view.last === 0,
      oninput: (event) => send({ do: "show", step: Number(event.target.value) }),
    });
    const back = view.last - view.at;
    return [
      element("span", { class: "tir-title" }, view.title),
      button("undo", "Undo", { do: "undo" }, { disabled: view.last === 0, "aria-keyshortcuts": "Control+Z" }),
      button("redo", "Redo", { do: "redo" }, { disabled: view.redo === 0 }),
      slider,
      element("code", { class: "tir-step" }, view.steps[view.at]),
      back ? button("return", `Return here (undo ${back})`, { do: "undo", steps: back }) : null,
      element(
        "span",
        { class: "tir-actions" },
        view.expected || view.comes // its place is kept: what is below does not move when it comes
          ? element(
            "span", { class: "tir-expected", title: "what the tuner's model expects of this program" },
            `expected ${view.expected ? duration(view.expected) : "…"}`,
          )
          : "",
        button("run", "Run", { do: "run" }, { title: "time this step, and compare its results with those of the program without steps" }),
        button("check", "Check", { do: "check" }, {
          title: "run this step where every access is watched, by the reference executor or the simulator of a GPU",
        }),
        button("tune", "Ask the tuner", { do: "tune" }, {
          title: "take the steps that tir.tune.default finds", disabled: view.last > 0,
        }),
        document.fullscreenEnabled ? element("button", { class: "tir-full", onclick: local.full }, "Full page") : "",
      ),
      element("output", { class: "tir-ran", "aria-live": "polite" }, this.ran(view.runs[view.at]), this.ran(view.checks[view.at])),
      this.timeline(view, send),
    ];
  }

  ran(found) {
    return found && element("span", { class: found.fault ? "tir-wrong" : "" }, found.text);
  }

  // A bar for each step that was run: its time beside the longest one.
  timeline(view, send) {
    const ran = view.runs.flatMap((run, step) => (run ? [{ ...run, step }] : []));
    if (ran.length < 2) return null;
    const longest = Math.max(...ran.map((run) => run.seconds));
    const bars = ran.map((run) =>
      element(
        "button",
        {
          class: "tir-bar", title: run.text, "data-key": `bar ${run.step}`, "aria-pressed": String(run.step === view.at),
          onclick: () => send({ do: "show", step: run.step }),
        },
        element("span", { style: `width:${Math.max(1, (100 * run.seconds) / longest)}%` }),
        element("code", {}, `${view.steps[run.step]}  ${run.text.split(", ").slice(0, 2).join(", ")}`),
      ),
    );
    return element("div", { class: "tir-timeline", role: "group", "aria-label": "times of the steps" }, ...bars);
  }
}

// ------------------------------------------------------------------ the tree of loops

const LOOP = "application/x-tir-loop";

const NOTCH = 14; // pixels from one extent to the next

// What the inner loop of a split may run: divisors of the extent; powers of two where there are none, or it is not known.
function innerExtents(extent) {
  const below = (most) => Array.from({ length: Math.max(0, most) }, (_, n) => n + 2);
  const divisors = below(Math.min(extent || 0, 4096) / 2 - 1).filter((n) => extent % n === 0);
  return divisors.length ? divisors : [2, 4, 8, 16, 32, 64].filter((n) => !extent || n < extent);
}

class Tree extends Part {
  needs({ tree, selected, at, last }) {
    return { tree, selected, past: at < last };
  }

  draw(view, context) {
    this.setAttribute("role", "tree");
    this.setAttribute("aria-label", "loops and blocks");
    const first = view.selected || (view.tree[0] || {}).label;
    return view.tree.map((row) => this.row(row, view, row.label === first, context));
  }

  row(row, view, isEntry, { send, light }) {
    const block = row.kind === "block";
    const label = block ? row.regions : `${row.extent}${row.kind === "serial" ? "" : `  ${row.kind}`}`;
    const touched = Object.entries(row.touched).map(([name, size]) => `${name} ${bytes(size)}`);
    return element(
      "div",
      {
        role: "treeitem", "aria-level": row.depth + 1, "aria-selected": String(row.label === view.selected),
        tabindex: isEntry ? "0" : "-1", class: `tir-row tir-${block ? "block" : row.kind.replace(/\W.*/, "")}`,
        title: (block ? row.iterators : touched).join("\n"), "data-place": row.label, "data-key": row.label,
        style: `padding-left:${0.5 + row.depth * 0.9}em`,
        onclick: () => send({ do: "select", place: row.label }),
        onmouseenter: () => light(row.label), onmouseleave: () => light(""), onfocus: () => light(row.label),
        onkeydown: (event) => this.key_pressed(event, row, view, send),
        ...(block || view.past ? {} : this.movable(row.label, send)),
      },
      element("b", {}, row.name),
      element("span", { class: "tir-what" }, label),
      row.bytes ? element("span", { class: "tir-bytes" }, `${bytes(row.bytes)} ${row.holds}`) : null,
      block || view.past ? null : this.handle(row, send),
    );
  }

  // Splits a loop: dragged to the right, or moved by arrow keys, it goes through the extents that the inner loop may have;
  // let go, or at Enter, the step is taken.
  handle(row, send) {
    const sizes = ["", ...innerExtents(Number(row.extent))];
    const made = element("span", {
      class: "tir-split", role: "slider", tabindex: "-1", title: "split: drag to the extent of the inner loop", "data-key": `split ${row.label}`,
      "aria-label": `extent of the inner loop of ${row.label}`, "aria-valuemin": 0, "aria-valuemax": sizes.length - 1,
    });
    let at = 0;
    const show = (next) => {
      at = Math.max(0, Math.min(sizes.length - 1, next));
      made.setAttribute("aria-valuenow", at);
      made.setAttribute("aria-valuetext", at ? `${sizes[at]}` : "not split");
      made.textContent = `÷${at ? ` ${sizes[at]}` : ""}`;
    };
    const take = () => at && send({ do: "apply", name: "split", given: { loop: row.label, factors: `[None, ${sizes[at]}]` } });
    show(0);
    made.addEventListener("click", (event) => event.stopPropagation());
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the row is not dragged
      made.setPointerCapture(event.pointerId);
      const from = event.clientX;
      const move = (moved) => show(Math.round((moved.clientX - from) / NOTCH));
      made.addEventListener("pointermove", move);
      const end = (ended) => {
        made.removeEventListener("pointermove", move);
        if (ended.type === "pointerup") take();
        show(0);
      };
      for (const kind of ["pointerup", "pointercancel"]) made.addEventListener(kind, end, { once: true });
    });
    made.addEventListener("mousedown", (event) => event.preventDefault());
    made.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.altKey || !(step || event.key === "Enter" || event.key === "Escape")) return;
      event.preventDefault();
      event.stopPropagation();
      if (step) show(at + step);
      else {
        if (event.key === "Enter") take();
        show(0);
      }
    });
    return made;
  }

  // A loop is moved to another one's place by dragging its row there, or by Alt and an arrow key.
  movable(place, send) {
    const dragged = (event) => event.dataTransfer.types.includes(LOOP);
    return {
      draggable: "true", "aria-keyshortcuts": "Alt+ArrowUp Alt+ArrowDown",
      ondragstart: (event) => event.dataTransfer.setData(LOOP, place),
      ondragover: (event) => {
        if (!dragged(event)) return;
        event.preventDefault();
        event.currentTarget.classList.add("tir-target");
      },
      ondragleave: (event) => event.currentTarget.classList.remove("tir-target"),
      ondrop: (event) => {
        if (!dragged(event)) return;
        event.preventDefault();
        event.currentTarget.classList.remove("tir-target");
        send({ do: "move", place: event.dataTransfer.getData(LOOP), to: place });
      },
    };
  }

  // Arrows go up and down the rows, left to what a row is in, right into it; Enter chooses.
  key_pressed(event, row, view, send) {
    const at = view.tree.indexOf(row);
    const loops = view.tree.filter((one) => one.kind !== "block");
    const to = { ArrowUp: loops[loops.indexOf(row) - 1], ArrowDown: loops[loops.indexOf(row) + 1] }[event.key];
    if (event.altKey && to && row.kind !== "block" && !view.past) send({ do: "move", place: row.label, to: to.label });
    else if (event.key === "Enter" || event.key === " ") send({ do: "select", place: row.label });
    else {
      const outer = view.tree.slice(0, at).map((one) => one.depth < row.depth).lastIndexOf(true);
      const next = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: view.tree.length - 1, ArrowLeft: outer, ArrowRight: at + 1 };
      const row_there = this.children[next[event.key]];
      if (!row_there) return;
      for (const one of this.children) one.tabIndex = one === row_there ? 0 : -1;
      row_there.focus();
    }
    event.preventDefault();
  }
}

// ------------------------------------------------------------------ what may be done

let lists = 0; // each list of choices has a name of its own on the page

function field(about) {
  const list = about.choices.length
    ? element("datalist", { id: `tir-choices-${(lists += 1)}` }, ...about.choices.map((value) => element("option", { value })))
    : null;
  const input = element("input", {
    name: about.name, value: about.value, placeholder: about.needed ? "needed" : "", list: list ? list.id : undefined,
    "data-key": `field ${about.name}`,
  });
  return element("label", {}, `${about.name} `, input, list);
}

// What the model expects after a step, beside what it expects now.
function gain(about, expected) {
  if (about.reason) return "";
  if (!about.estimated) return "…";
  if (!about.seconds) return "no estimate";
  return `${duration(about.seconds)}${expected ? `, ${factor(expected / about.seconds) || "as now"}` : ""}`;
}

function factor(times) {
  if (times > 1.005) return `${Number(times.toPrecision(3))}× faster`;
  return times < 0.995 ? `${Number((1 / times).toPrecision(3))}× slower` : "";
}

class OfferRow extends Part {
  draw({ about, expected, current }, { send }) {
    this.className = `tir-offer ${about.reason ? "tir-refused" : "tir-legal"}`;
    this.dataset.offer = about.name;
    const defaults = Object.fromEntries(about.fields.map((one) => [one.name, one.value]));
    const take = (given) => send({ do: "apply", name: about.name, given: { ...about.given, ...defaults, ...given } });
    const head = element(
      "div",
      { class: "tir-head" },
      about.reason
        ? element("code", {}, about.text)
        : element("button", { class: "tir-take", "data-apply": about.name, "data-key": `apply ${about.name}`, onclick: () => take({}) }, element("code", {}, about.text)),
      element("span", { class: "tir-gain" }, gain(about, expected)),
      current === "all" ? element("span", { class: "tir-tag" }, about.group) : null,
    );
    const proof = about.reason
      ? element("p", { class: "tir-reason" }, ...[about.reason, ...about.witness].map((line) => element("span", {}, line)))
      : null;
    return [head, element("p", { class: "tir-hint" }, ...prose(about.summary)), proof, this.choices(about, expected, take), this.form(about, take)];
  }

  // The values of the first parameter that is needed, to be taken by a click.
  choices(about, expected, take) {
    if (about.variants.length < 2) return null;
    const shown = about.variants.map(({ value, seconds }) =>
      element(
        "button",
        {
          class: "tir-chip", "data-choice": value, "data-key": `${about.name} ${value}`, onclick: () => take({ [about.free]: value }),
          title: `${about.free}=${value}${seconds ? `: ${duration(seconds)} expected` : ""}`,
        },
        value.replace(/^[[(]|[\])]$|'/g, ""),
        element("small", {}, seconds && expected ? ` ${factor(expected / seconds)}` : ""),
      ),
    );
    return element("div", { class: "tir-choices", role: "group", "aria-label": `${about.free} of ${about.name}` }, `${about.free}: `, ...shown);
  }

  // Made once, so that what was typed stays while estimates come.
  form(about, take) {
    if (this.made || (!about.fields.length && !about.reason)) return this.made;
    const form = element(
      "form",
      {
        class: "tir-form",
        onsubmit: (event) => {
          event.preventDefault();
          take(Object.fromEntries(new FormData(event.target).entries()));
        },
      },
      ...about.fields.map(field),
      element("button", { type: "submit", "data-try": about.name }, about.reason ? "Try" : "Apply"),
    );
    this.made = element("details", {}, element("summary", { "data-key": `more ${about.name}` }, about.reason ? "other arguments" : "arguments"), form);
    return this.made;
  }
}

class Offers extends Part {
  needs({ at, last, selected, offers, groups, expected }, { local }) {
    return { past: at < last, at, selected, offers, groups, expected, current: local.group };
  }

  draw(view, context) {
    if (view.past) return [element("p", { class: "tir-hint" }, "An earlier step is shown. Return to it to change it.")];
    if (!view.selected) return [element("p", { class: "tir-hint" }, "Choose a loop or a block to see what may be done with it.")];
    if (!view.offers) return [element("p", { class: "tir-hint" }, `Looking at what may be done with ${view.selected} …`)];
    const about = `${view.selected} after ${view.at}`;
    if (about !== this.about) [this.made, this.order] = [new Map(), []]; // rows stay, with what was typed, as long as they are about one place
    this.about = about;
    const ordered = this.stable(view.offers);
    this.order = ordered.map((one) => one.name);
    const shown = ordered.filter((one) => view.current === "all" || one.group === view.current);
    const row = (one) => {
      const made = this.made.get(one.name) ?? document.createElement("tir-offer");
      this.made.set(one.name, made);
      made.update({ about: one, expected: view.expected, current: view.current }, context);
      return made;
    };
    const legal = shown.filter((one) => !one.reason);
    const refused = shown.filter((one) => one.reason);
    return [
      this.groups(view, context),
      element(
        "div",
        { class: "tir-offers tir-scroll", "data-scroll": `offers for ${about}`, role: "tabpanel" },
        element("h4", {}, `May be done with ${view.selected}`),
        ...(legal.length ? legal.map(row) : [element("p", { class: "tir-hint" }, "Nothing here.")]),
        refused.length ? element("h4", {}, "May not, and why") : null,
        ...refused.map(row),
      ),
    ];
  }

  // Offers do not change places under the pointer while estimates come.
  stable(offers) {
    const known = this.matches(":hover") ? this.order : [];
    const place = (one) => (known.includes(one.name) ? known.indexOf(one.name) : known.length);
    return [...offers].sort((one, other) => place(one) - place(other));
  }

  groups(view, { local, redraw }) {
    const tabs = ["all", ...view.groups].map((name) => {
      const count = view.offers.filter((one) => !one.reason && (name === "all" || one.group === name)).length;
      return element(
        "button",
        {
          role: "tab", class: "tir-group", "data-group": name, "data-key": `group ${name}`, "aria-selected": String(name === view.current),
          disabled: !count && name !== view.current,
          onclick: () => {
            local.group = name;
            redraw();
          },
        },
        `${name} ${count}`,
      );
    });
    return element("div", { class: "tir-groups", role: "tablist", "aria-label": "groups of steps" }, ...tabs);
  }
}

// ------------------------------------------------------------------ code

// Lines of code, in which `places` has the lines of loops and blocks by label. Pointing at a line lights up the innermost
// of them wherever it is shown; a click chooses it.
function listing(name, lines, places, { light, send, selected }) {
  const rows = lines.map((line, n) => element("div", { "data-line": n, html: line || " " }));
  const at = (event) => innermost(places, Number(event.target.closest("[data-line]")?.dataset.line ?? -1));
  return element(
    "pre",
    {
      class: "tir-code tir-scroll", "data-scroll": name, tabindex: "0", "aria-label": name,
      onmouseover: (event) => light(at(event)), onmouseleave: () => light(""),
      onclick: (event) => {
        const place = at(event);
        if (place && place !== selected() && getSelection().isCollapsed) send({ do: "select", place });
      },
    },
    element("div", { class: "tir-lines" }, ...rows),
  );
}

function innermost(places, line) {
  let found = "";
  let size = Infinity;
  for (const [label, ranges] of Object.entries(places)) {
    for (const [first, last] of ranges) {
      if (first <= line && line <= last && last - first < size) [found, size] = [label, last - first];
    }
  }
  return found;
}

function change(lines) {
  const signs = { added: "+", to: "+", removed: "−", from: "−", changed: "~" };
  const rows = lines.map((line) =>
    element(
      "div",
      { class: `tir-line-${line.kind}` },
      `${signs[line.kind] || " "} ${"    ".repeat(line.depth)}`,
      ...line.words.map(([kind, text]) => (kind === "same" ? text : element(kind === "added" ? "ins" : "del", {}, text))),
    ),
  );
  return element("pre", { class: "tir-code tir-scroll tir-diff", "data-scroll": "diff", tabindex: "0", "aria-label": "what the step changed" }, element("div", { class: "tir-lines" }, ...rows));
}

class Program extends Part {
  needs({ tree, program, diff }, { local }) {
    const places = Object.fromEntries(tree.filter((row) => row.lines.length).map((row) => [row.label, [row.lines]]));
    return { places, program, diff, current: local.left === "diff" && diff.length ? "diff" : "program" };
  }

  draw(view, context) {
    const tab = (name, words, disabled = false) =>
      element(
        "button",
        {
          role: "tab", "aria-selected": String(view.current === name), disabled, "data-tab": name, "data-key": name,
          onclick: () => {
            context.local.left = name;
            context.redraw();
          },
        },
        words,
      );
    const tabs = element("div", { class: "tir-tabs", role: "tablist" }, tab("program", "Program"), tab("diff", "What the step changed", !view.diff.length));
    this.places = view.current === "diff" ? {} : view.places;
    return [tabs, view.current === "diff" ? change(view.diff) : listing("program", view.program, view.places, context)];
  }
}

class Pane extends Part {
  needs({ panes, pane }) {
    return { panes, pane };
  }

  draw({ panes, pane }, context) {
    this.classList.toggle("tir-failed", pane.failed);
    this.classList.toggle("tir-later", !pane.lines); // what was there stands until it is made
    this.dataset.shown = pane.lines ? pane.name : "";
    this.places = pane.lines ? pane.places : {};
    const [passes, others] = [true, false].map((is) => panes.filter((name) => name.startsWith("after ") === is));
    const open = (name) => context.send({ do: "open", pane: name });
    const choose = element(
      "select",
      { "aria-label": "program after a pass", "data-key": "pane", onchange: (event) => open(event.target.value) },
      element("option", { value: "", selected: others.includes(pane.name), disabled: true }, "after …"),
      ...passes.map((name) => element("option", { value: name, selected: name === pane.name }, name)),
    );
    const tabs = others.map((name) =>
      element(
        "button",
        {
          role: "tab", class: "tir-group", "data-pane": name, "data-key": `pane ${name}`, "aria-selected": String(name === pane.name),
          onclick: () => open(name),
        },
        name,
      ),
    );
    if (pane.lines) {
      const drawing = { class: "tir-picture tir-scroll", "data-scroll": pane.name, tabindex: "0", "aria-label": pane.name, html: pane.html };
      this.shown = pane.html ? element("div", drawing) : listing("pane", pane.lines, this.places, context);
    }
    return [element("div", { class: "tir-groups", role: "tablist", "aria-label": "beside the program" }, ...tabs, choose), this.shown];
  }
}

// Whether `text` is on the clipboard. Pages over plain http have none: there the text of `shown` is selected and copied as
// a user would; if the browser does not do that either, it stays selected.
async function copied(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    shown.closest("details").open = true;
    getSelection().selectAllChildren(shown);
    return document.execCommand("copy");
  }
}

class Replay extends Part {
  needs({ python }) {
    return { python };
  }

  draw({ python }) {
    const open = this.querySelector("details")?.open;
    const text = element("pre", { class: "tir-code tir-python", tabindex: "0" });
    text.textContent = python;
    const copy = element("button", { class: "tir-copy", "data-key": "copy" }, "Copy");
    copy.addEventListener("click", async () => {
      copy.textContent = (await copied(python, text)) ? "Copied" : "Selected: press Ctrl+C";
    });
    return [element("details", { class: "tir-replay", open }, element("summary", {}, "The schedule as Python ", copy), text)];
  }
}

class Failure extends Part {
  needs({ error }, { local }) {
    return { text: local.failure || error };
  }

  draw({ text }, { send, local }) {
    this.setAttribute("role", "alert");
    if (!text) return [];
    const close = () => {
      local.failure = "";
      send({ do: "refresh" });
    };
    return [element("pre", { class: "tir-error" }, text), element("button", { class: "tir-close", "aria-label": "close", onclick: close }, "×")];
  }
}

// ------------------------------------------------------------------ sizes

const LEAST = 12; // percent of a side

// A bar between two parts: dragged, or moved by arrow keys. `name` is the property of the style that it sets, in percent.
class Splitter extends HTMLElement {
  connectedCallback() {
    if (this.percent !== undefined) return; // it was moved in the page
    this.upright = this.dataset.axis === "x";
    for (const [name, value] of Object.entries({
      role: "separator", tabindex: "0", "aria-orientation": this.upright ? "vertical" : "horizontal",
      "aria-valuemin": LEAST, "aria-valuemax": 100 - LEAST, "aria-label": this.dataset.label,
    })) {
      this.setAttribute(name, value);
    }
    this.place(Number(this.dataset.start));
    this.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.setPointerCapture(event.pointerId);
      const [from, start] = [this.upright ? event.clientX : event.clientY, this.percent];
      const whole = this.upright ? this.parentElement.clientWidth : this.parentElement.clientHeight;
      const move = (moved) => this.place(start + (100 * ((this.upright ? moved.clientX : moved.clientY) - from)) / whole);
      this.addEventListener("pointermove", move);
      this.addEventListener("pointerup", () => this.removeEventListener("pointermove", move), { once: true });
    });
    this.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -2, ArrowUp: -2, ArrowRight: 2, ArrowDown: 2 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.place(this.percent + step);
    });
  }

  place(percent) {
    this.percent = Math.min(100 - LEAST, Math.max(LEAST, percent));
    this.setAttribute("aria-valuenow", Math.round(this.percent));
    this.parentElement.style.setProperty(this.dataset.property, `${this.percent}%`);
  }
}

// ------------------------------------------------------------------ the whole

const PARTS = {
  "tir-history": History, "tir-tree": Tree, "tir-offer": OfferRow, "tir-offers": Offers, "tir-program": Program,
  "tir-pane": Pane, "tir-replay": Replay, "tir-failure": Failure, "tir-splitter": Splitter,
};
const SLOW = 20_000; // milliseconds without an answer that are told

function define() {
  for (const [name, made] of Object.entries(PARTS)) {
    if (!customElements.get(name)) customElements.define(name, made);
  }
}

// The lines of `label` in a part; where they are not known, those of the innermost statement around it whose are.
function linesOf(part, label, tree) {
  let at = tree.findIndex((row) => row.label === label);
  while (at >= 0 && !(tree[at].label in part.places)) {
    const { depth } = tree[at];
    at = tree.slice(0, at).map((row) => row.depth < depth).lastIndexOf(true);
  }
  return at < 0 ? [] : part.places[tree[at].label];
}

function mark(root, label, tree, kind, scroll = false) {
  for (const one of root.querySelectorAll(`.${kind}`)) one.classList.remove(kind);
  if (!label) return;
  for (const row of root.querySelectorAll("[data-place]")) row.classList.toggle(kind, row.dataset.place === label);
  for (const part of root.querySelectorAll("tir-program, tir-pane")) {
    const lines = part.querySelectorAll("[data-line]");
    for (const [first, last] of lines.length ? linesOf(part, label, tree) : []) {
      for (let n = first; n <= last; n += 1) lines[n]?.classList.add(kind);
    }
    const area = part.querySelector(".tir-code");
    const start = part.querySelector(`.tir-code .${kind}`);
    if (scroll && start) area.scrollTop = start.offsetTop - area.offsetTop - 24;
  }
}

function splitter(axis, property, start, label) {
  return element("tir-splitter", { "data-axis": axis, "data-property": property, "data-start": start, "data-label": label });
}

function render({ model, el }) {
  define();
  const local = { left: "program", group: "all", subject: "", lit: "", failure: "", waiting: 0, asked: -1, due: 0 };
  const parts = ["tir-history", "tir-tree", "tir-offers", "tir-program", "tir-pane", "tir-replay", "tir-failure"];
  const made = Object.fromEntries(parts.map((name) => [name, document.createElement(name)]));
  made["tir-tree"].className = "tir-tree tir-scroll";
  made["tir-tree"].dataset.scroll = "tree";
  made["tir-program"].className = made["tir-pane"].className = "tir-side";
  const left = element(
    "div", { class: "tir-left" }, made["tir-tree"], splitter("y", "--tir-tree", 38, "height of the tree"), made["tir-offers"],
  );
  const columns = element(
    "div", { class: "tir-columns" }, left, splitter("x", "--tir-one", 34, "width of the tree"), made["tir-program"],
    splitter("x", "--tir-two", 36, "width of the program"), made["tir-pane"],
  );
  const root = element("div", { class: "tir-explorer" }, made["tir-history"], columns, made["tir-replay"], made["tir-failure"]);
  local.full = () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());

  const send = (message) => {
    clearTimeout(local.waiting);
    local.waiting = setTimeout(() => {
      local.failure = `no answer for ${SLOW / 1000} s: Python is still at work, or was stopped`;
      draw();
    }, SLOW);
    root.setAttribute("aria-busy", "true");
    post(message);
  };
  // `due` is the number of the answer to what was sent last: those before it are no end of the waiting.
  const post = (message) => {
    local.due = Math.max(local.due, model.get("view").answered) + 1;
    model.send(message);
  };
  const light = (label) => {
    local.lit = label;
    mark(root, label, model.get("view").tree, "tir-lit");
  };
  const context = { send, light, local, redraw: () => draw(), selected: () => model.get("view").selected };

  function draw() {
    local.late = local.held || local.dragged; // what is pressed or dragged must be there still when it is let go
    if (local.late) return;
    try {
      const view = model.get("view");
      for (const part of Object.values(made)) part.update(view, context);
      const subject = `${view.selected} of ${view.at} in ${view.pane.lines ? view.pane.name : ""} and ${local.left}`;
      mark(root, view.selected, view.tree, "tir-marked", subject !== local.subject);
      light(local.lit);
      local.subject = subject;
    } catch (error) {
      el.replaceChildren(element("pre", { class: "tir-explorer tir-error" }, `The explorer could not be drawn: ${error}`));
    }
  }
  function answered() {
    const { pending, answered: number, lost } = model.get("view");
    if (lost) local.due = number; // there will be no answer
    if (number >= local.due) {
      clearTimeout(local.waiting);
      local.failure = "";
      root.removeAttribute("aria-busy");
    }
    draw();
    if (pending && local.asked !== number) {
      local.asked = number;
      post({ do: "more" });
    }
  }
  const release = () => {
    local.held = false;
    if (local.late && !local.dragged) draw();
  };
  const let_go = () => setTimeout(release); // after the click
  root.addEventListener("pointerdown", () => {
    local.held = true;
  });
  for (const kind of ["pointerup", "pointercancel"]) window.addEventListener(kind, let_go);
  root.addEventListener("dragstart", () => {
    local.dragged = true; // a drag cancels the pointer
  });
  root.addEventListener("dragend", () => {
    local.dragged = false;
    release();
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.target.matches("input")) return;
    event.preventDefault();
    send({ do: event.shiftKey ? "redo" : "undo" });
  });
  el.replaceChildren(root);
  model.on("change:view", answered);
  answered();
  return () => {
    clearTimeout(local.waiting);
    for (const kind of ["pointerup", "pointercancel"]) window.removeEventListener(kind, let_go);
    model.off("change:view", answered);
  };
}

export default { render };
