// The explorer of a schedule: draws the model's `view`, sends what is clicked as messages. See explorer.py.

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

function bytes(count) {
  const units = ["B", "kB", "MB", "GB"];
  let at = 0;
  while (count >= 1000 && at < units.length - 1) {
    count /= 1000;
    at += 1;
  }
  return `${Number(count.toPrecision(3))} ${units[at]}`;
}

// A sentence of a docstring, its names between double backticks as code.
function prose(text) {
  return text.split("``").map((part, n) => (n % 2 ? element("code", {}, part) : part));
}

function history(view, send) {
  const past = view.at < view.last;
  const slider = element("input", {
    type: "range", min: 0, max: view.last, value: view.at, "aria-label": "step of the history", class: "tir-slider",
    disabled: view.last === 0, onchange: (event) => send({ do: "show", step: Number(event.target.value) }),
  });
  return element(
    "div",
    { class: "tir-history" },
    element("button", { onclick: () => send({ do: "undo" }), disabled: view.last === 0, class: "tir-undo" }, "Undo"),
    element("button", { onclick: () => send({ do: "redo" }), disabled: view.redo === 0, class: "tir-redo" }, "Redo"),
    slider,
    element("code", { class: "tir-step" }, view.steps[view.at]),
    past
      ? element(
          "button",
          { class: "tir-return", onclick: () => send({ do: "undo", steps: view.last - view.at }) },
          `Return here (undo ${view.last - view.at})`,
        )
      : null,
    element("button", { class: "tir-run", onclick: () => send({ do: "run" }), title: "time this step and compare its results" }, "Run"),
    element("output", { class: "tir-ran" }, view.runs[view.at] ? view.runs[view.at].text : ""),
    timeline(view, send),
  );
}

// A bar for each step that was run: its time beside the longest one.
function timeline(view, send) {
  const ran = view.runs.flatMap((run, step) => (run ? [{ ...run, step }] : []));
  if (ran.length < 2) return null;
  const longest = Math.max(...ran.map((run) => run.seconds));
  const bars = ran.map((run) =>
    element(
      "button",
      { class: "tir-bar", title: run.text, "aria-pressed": String(run.step === view.at), onclick: () => send({ do: "show", step: run.step }) },
      element("span", { style: `width:${Math.max(1, (100 * run.seconds) / longest)}%` }),
      element("code", {}, `${view.steps[run.step]}  ${run.text.split(",")[0]}`),
    ),
  );
  return element("div", { class: "tir-timeline", role: "group", "aria-label": "times of the steps" }, ...bars);
}

// A loop is moved to another one's place by dragging its row there, or by Alt and an arrow key.
function movable(view, place, send) {
  if (view.at < view.last) return {};
  const loops = view.tree.filter((row) => row.kind !== "block").map((row) => row.label);
  const dragged = (event) => event.dataTransfer.types.includes("application/x-tir-loop");
  return {
    draggable: "true", "aria-keyshortcuts": "Alt+ArrowUp Alt+ArrowDown",
    ondragstart: (event) => event.dataTransfer.setData("application/x-tir-loop", place),
    ondragover: (event) => {
      if (!dragged(event)) return;
      event.preventDefault();
      event.currentTarget.classList.add("tir-target");
    },
    ondragleave: (event) => event.currentTarget.classList.remove("tir-target"),
    ondrop: (event) => {
      if (!dragged(event)) return;
      event.preventDefault();
      send({ do: "move", place: event.dataTransfer.getData("application/x-tir-loop"), to: place });
    },
    onkeydown: (event) => {
      const to = { ArrowUp: loops[loops.indexOf(place) - 1], ArrowDown: loops[loops.indexOf(place) + 1] }[event.key];
      if (!event.altKey || !to) return;
      event.preventDefault();
      send({ do: "move", place, to });
    },
  };
}

function tree(view, send) {
  const rows = view.tree.map((row) => {
    const block = row.kind === "block";
    const label = block ? row.regions : `${row.extent}${row.kind === "serial" ? "" : `  ${row.kind}`}`;
    const touched = Object.entries(row.touched).map(([name, size]) => `${name} ${bytes(size)}`);
    const about = block ? row.iterators.join("\n") : touched.join("\n");
    return element(
      "button",
      {
        ...(block ? {} : movable(view, row.label, send)),
        class: `tir-row tir-${block ? "block" : row.kind.replace(/\W.*/, "")}`, title: about, "data-place": row.label,
        "aria-pressed": String(row.label === view.selected), style: `padding-left:${0.5 + row.depth * 0.9}em`,
        onclick: () => send({ do: "select", place: row.label }),
      },
      element("b", {}, row.name),
      element("span", { class: "tir-what" }, label),
      row.bytes ? element("span", { class: "tir-bytes" }, `${bytes(row.bytes)} ${row.holds}`) : null,
    );
  });
  return element("div", { class: "tir-tree tir-scroll", "data-scroll": "tree" }, ...rows);
}

let lists = 0; // each list of choices has a name of its own on the page

function field(about) {
  const list = about.choices.length
    ? element("datalist", { id: `tir-choices-${(lists += 1)}` }, ...about.choices.map((value) => element("option", { value })))
    : null;
  const input = element("input", {
    name: about.name, value: about.value, placeholder: about.needed ? "needed" : "", list: list ? list.id : undefined,
  });
  return element("label", {}, `${about.name} `, input, list);
}

function offer(about, send) {
  const optional = about.fields.filter((one) => !one.needed).map(field);
  const more = optional.length ? element("details", {}, element("summary", {}, "more"), ...optional) : null;
  const form = element(
    "form",
    {
      class: "tir-form",
      onsubmit: (event) => {
        event.preventDefault();
        const given = { ...about.given, ...Object.fromEntries(new FormData(event.target).entries()) };
        send({ do: "apply", name: about.name, given });
      },
    },
    ...about.fields.filter((one) => one.needed).map(field),
    more,
    element("button", { type: "submit", "data-apply": about.name }, "Apply"),
  );
  return element(
    "details",
    { class: about.reason ? "tir-refused" : "tir-legal", "data-offer": about.name },
    element(
      "summary",
      { title: about.reason || about.summary },
      element("code", {}, about.text),
      about.reason ? element("span", { class: "tir-what" }, ` ${about.reason.split("\n")[0]}`) : null,
    ),
    about.summary ? element("p", { class: "tir-hint" }, ...prose(about.summary)) : null,
    about.reason ? element("p", { class: "tir-reason" }, about.reason) : null,
    form,
  );
}

function offers(view, send) {
  if (view.at < view.last) return element("p", { class: "tir-hint" }, "An earlier step is shown. Return to it to change it.");
  if (!view.selected) return element("p", { class: "tir-hint" }, "Choose a loop or a block to see what may be done with it.");
  const legal = view.offers.filter((about) => !about.reason);
  const refused = view.offers.filter((about) => about.reason);
  return element(
    "div",
    { class: "tir-offers tir-scroll", "data-scroll": "offers" },
    element("h4", {}, `May be done with ${view.selected}`),
    ...legal.map((about) => offer(about, send)),
    element("h4", {}, "May not, and why"),
    ...refused.map((about) => offer(about, send)),
  );
}

function listing(name, lines, ranges) {
  const marked = (n) => ranges.some(([first, last]) => first <= n && n <= last);
  const rows = lines.map((line, n) => element("div", { class: marked(n) ? "tir-marked" : "", html: line || " " }));
  return element("pre", { class: "tir-code tir-scroll", "data-scroll": name }, ...rows);
}

function diff(lines) {
  const kinds = { "+": "tir-added", "-": "tir-removed", "@": "tir-hunk" };
  const rows = lines.map((line) => {
    const made = element("div", { class: kinds[line[0]] || "" });
    made.textContent = line || " ";
    return made;
  });
  return element("pre", { class: "tir-code tir-scroll tir-diff", "data-scroll": "diff" }, ...rows);
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

function python(view) {
  const copy = element("button", { class: "tir-copy" }, "Copy");
  copy.addEventListener("click", async () => {
    copy.textContent = (await copied(view.python, text)) ? "Copied" : "Selected: press Ctrl+C";
  });
  const text = element("pre", { class: "tir-code tir-python" });
  text.textContent = view.python;
  return element("details", { class: "tir-replay" }, element("summary", {}, "The schedule as Python ", copy), text);
}

function programSide(view, local, redraw) {
  const row = view.tree.find((one) => one.label === view.selected);
  const ranges = row && row.lines.length ? [row.lines] : [];
  const tab = (name, words, disabled = false) =>
    element(
      "button",
      {
        "aria-pressed": String(local.left === name), disabled, "data-tab": name,
        onclick: () => {
          local.left = name;
          redraw();
        },
      },
      words,
    );
  const changed = local.left === "diff" && view.diff.length > 0;
  return element(
    "div",
    { class: "tir-side" },
    element("div", { class: "tir-tabs" }, tab("program", "Program"), tab("diff", "What the step changed", !view.diff.length)),
    changed ? diff(view.diff) : listing("program", view.program, ranges),
  );
}

function codeSide(view, send) {
  const choose = element(
    "select",
    { "aria-label": "code beside the program", onchange: (event) => send({ do: "open", pane: event.target.value }) },
    ...view.panes.map((name) => element("option", { value: name, selected: name === view.pane.name }, name)),
  );
  return element(
    "div",
    { class: view.pane.failed ? "tir-side tir-failed" : "tir-side" },
    element("div", { class: "tir-tabs" }, choose),
    listing("pane", view.pane.lines, view.pane.marked),
  );
}

function showMarked(root) {
  for (const area of root.querySelectorAll(".tir-code")) {
    const first = area.querySelector(".tir-marked");
    if (first) area.scrollTop = first.offsetTop - area.offsetTop - 24;
  }
}

function render({ model, el }) {
  const local = { left: "program", subject: "" };
  const send = (message) => model.send(message);
  const draw = () => {
    try {
      redraw();
    } catch (error) {
      el.replaceChildren(element("pre", { class: "tir-explorer tir-error" }, `The explorer could not be drawn: ${error}`));
    }
  };
  const redraw = () => {
    const view = model.get("view");
    const focused = el.contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
    const kept = new Map([...el.querySelectorAll("[data-scroll]")].map((area) => [area.dataset.scroll, area.scrollTop]));
    const root = element(
      "div",
      { class: "tir-explorer" },
      element("div", { class: "tir-title" }, view.title),
      history(view, send),
      view.error ? element("pre", { class: "tir-error" }, view.error) : null,
      element(
        "div",
        { class: "tir-columns" },
        element("div", { class: "tir-left" }, tree(view, send), offers(view, send)),
        programSide(view, local, draw),
        codeSide(view, send),
      ),
      python(view),
    );
    el.replaceChildren(root);
    for (const area of root.querySelectorAll("[data-scroll]")) area.scrollTop = kept.get(area.dataset.scroll) ?? 0;
    const again = focused && [...root.querySelectorAll("[data-place]")].find((row) => row.dataset.place === focused);
    if (again) again.focus();
    const subject = `${view.selected} in ${view.pane.name}`;
    if (subject !== local.subject) showMarked(root);
    local.subject = subject;
  };
  model.on("change:view", draw);
  draw();
  return () => model.off("change:view", draw);
}

export default { render };
