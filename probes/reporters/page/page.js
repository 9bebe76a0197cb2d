const data = JSON.parse(document.getElementById("data").textContent);
const templates = data.templates;
const bySha = new Map(templates.map((one) => [one.sha, one]));
const $ = (id) => document.getElementById(id);

// What strangers wrote: characters that do not print are shown as escapes. Line breaks and tabs stay.
const unseen = /(?![\n\t ])[\p{C}\p{Z}]/gu;
const visible = (text) => String(text).replace(unseen, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : name === "title" || name === "aria-label" ? visible(value) : value);
  }
  const shown = children.flat(Infinity).filter((child) => child !== null && child !== undefined);
  made.append(...shown.map((child) => (child instanceof Node ? child : visible(child))));
  return made;
}
const number = (value) => value.toLocaleString("en");
const percent = (part, whole) => (whole ? Math.round((100 * part) / whole) + " %" : "–");
const counted = (count, one, many) => `${number(count)} ${count === 1 ? one : many || one + "s"}`;
const USUAL = /^(tokenizer_config|chat_template|processor_config)\.json$|^chat_template\.jinja$/;
function shortened(path) {
  const names = path.split(/[\\/]/);
  return names.slice(USUAL.test(names[names.length - 1]) ? -2 : -1).join("/");
}
const words = (name) => name.replace(/^supports_/, "").replace(/[_-]/g, " ");

// Facets: what templates can be filtered by. `test` gives true, false, or null where nobody knows.

const facets = new Map();
function facet(key, group, label, test, no) {
  facets.set(key, { key, group, label, test, no: no || `not ${label}` });
}
const flag = (value) => (value === undefined || value === null ? null : value);
for (const code of Object.keys(data.tally.rules)) {
  facet(`rule ${code}`, "Rules", `${code} ${data.tally.rules[code].name}`, (one) => one.codes.includes(code), `no ${code}`);
}
facet("errors", "Rules", "with errors", (one) => one.errors > 0, "without errors");
for (const law of Object.keys(data.tally.laws)) {
  facet(`law ${law}`, "Prefix laws", `breaks ${law}`, (one) => (flag(one.laws[law]) === null ? null : !one.laws[law]), `keeps ${law}`);
}
for (const name of Object.keys(data.tally.caps)) {
  facet(`caps ${name}`, "llama.cpp caps", name, (one) => flag(one.caps && one.caps[name]));
}
const answers = { yes: true, no: false };
for (const name of Object.keys(data.tally.observed)) {
  facet(`observed ${name}`, "Observed", words(name), (one) => flag(answers[one.observed[name]]));
}
const familyOf = (one) => one.family || data.no_family;
for (const name of Object.keys(data.tally.by_family)) {
  facet(`family ${name}`, "Families", name, (one) => familyOf(one) === name);
}
for (const path of Object.keys(templates.length ? templates[0].engines : {})) {
  facet(`loads ${path}`, "Engines", `loads on ${path}`, (one) => (one.engines[path] || [null])[0] !== null, `refused by ${path}`);
}

// The state: what is filtered, how it is sorted, how much of it stands there.

const state = { search: "", filters: new Map(), sort: "errors", down: true, count: 100 };

function chosen() {
  const wanted = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  return templates.filter((one) => {
    for (const [key, yes] of state.filters) if (facets.get(key).test(one) !== yes) return false;
    if (!wanted.length) return true;
    one.text = one.text || [one.sha, one.name, familyOf(one), ...one.codes, ...one.places].join(" ").toLowerCase();
    return wanted.every((word) => one.text.includes(word));
  });
}

const columns = [
  { key: "id", label: "Template", value: (one) => shortened(one.id).toLowerCase(), up: true },
  { key: "family", label: "Family", value: (one) => one.family || "\uffff", up: true },
  { key: "files", label: "Files", value: (one) => one.files },
  { key: "errors", label: "Errors", value: (one) => one.errors * 1e6 + one.files * 100 + one.warnings },
  { key: "warnings", label: "Warnings", value: (one) => one.warnings },
  ...Object.keys(templates.length ? templates[0].engines : {}).map((path, index) => ({
    key: `loads ${path}`, label: path.endsWith(":raw") ? path.slice(0, -4) : path.slice(path.indexOf(":") + 1), path, start: index === 0, engine: path, value: (one) => one.engines[path][0] ?? -1,
  })),
  ...Object.keys(data.tally.caps).map((name, index) => ({
    key: `caps ${name}`, label: words(name), flag: "caps", start: index === 0, name, value: (one) => rank(one.caps && one.caps[name]),
  })),
  ...Object.keys(data.tally.laws).map((law, index) => ({
    key: `law ${law}`, label: words(law), flag: "laws", start: index === 0, name: law, value: (one) => 2 - rank(one.laws[law]),
  })),
];
function rank(value) {
  return value === true ? 2 : value === false ? 0 : 1;
}

function sorted(rows) {
  const column = columns.find((one) => one.key === state.sort);
  const sign = state.down ? -1 : 1;
  return rows
    .map((one) => [column.value(one), one])
    .sort(([a, x], [b, y]) => (a < b ? -sign : a > b ? sign : y.files - x.files || (x.id < y.id ? -1 : 1)))
    .map((pair) => pair[1]);
}

// The matrix.

const heads = columns.map((column) => {
  const title = column.engine ? `conversations rendered on ${column.engine}` : column.flag === "caps" ? column.name : column.flag ? `prefix law ${column.name}` : null;
  return make("th", { scope: "col", title, class: [column.flag || column.engine ? "flag" : "", column.start ? "start" : ""].join(" ").trim() || null },
    make("button", { type: "button", onclick: () => sortBy(column) }, column.label));
});
$("matrix").tHead.append(make("tr", {}, heads));

function markSorted() {
  columns.forEach((column, index) => {
    const here = column.key === state.sort;
    heads[index].classList.toggle("down", here && state.down);
    heads[index].classList.toggle("up", here && !state.down);
    if (here) heads[index].setAttribute("aria-sort", state.down ? "descending" : "ascending");
    else heads[index].removeAttribute("aria-sort");
  });
}

function sortBy(column) {
  state.down = state.sort === column.key ? !state.down : !column.up;
  state.sort = column.key;
  draw();
}

const marks = {
  caps: (value) => (value === true ? ["yes", "●", "yes"] : value === false ? ["no", "○", "no"] : ["unknown", "·", "not judged"]),
  laws: (value) => (value === true ? ["good", "●", "holds"] : value === false ? ["bad", "✕", "broken"] : ["unknown", "·", "not judged"]),
};

function line(one) {
  const row = make("tr", { onclick: () => open(one.sha), "data-sha": one.sha });
  for (const column of columns) {
    const start = column.start ? " start" : "";
    if (column.flag) {
      const [kind, mark, said] = marks[column.flag](one[column.flag] && one[column.flag][column.name]);
      row.append(make("td", { class: `flag ${kind}${start}`, title: `${column.label}: ${said}` }, mark));
    } else if (column.engine) {
      const [rendered, of] = one.engines[column.engine];
      row.append(make("td", { class: `number${start}${rendered === null ? " error" : ""}`, title: `${column.engine}: ${rendered === null ? "does not load it" : `${rendered} of ${of} conversations`}` }, rendered === null ? "✕" : String(rendered)));
    } else if (column.key === "id") {
      row.append(make("td", { title: one.id }, make("button", { type: "button", class: "open" }, shortened(one.id) + (one.name && one.name !== "default" ? ` · ${one.name}` : ""))));
    } else if (column.key === "family") {
      row.append(make("td", {}, one.family || ""));
    } else {
      row.append(make("td", { class: `number ${one[column.key] ? { errors: "error", warnings: "warning" }[column.key] || "" : "zero"}` }, number(one[column.key])));
    }
  }
  return row;
}

function draw() {
  markSorted();
  const rows = sorted(chosen());
  $("matrix").tBodies[0].replaceChildren(...rows.slice(0, state.count).map(line));
  $("more").hidden = rows.length <= state.count;
  $("shown").textContent = rows.length === templates.length ? counted(rows.length, "template") : `${number(rows.length)} of ${counted(templates.length, "template")}`;
  $("chips").replaceChildren(...[...state.filters].map(([key, yes]) => {
    const one = facets.get(key);
    return make("span", { class: "chip" },
      make("button", { type: "button", title: "turn around", onclick: () => filter(key, !yes) }, yes ? one.label : one.no),
      make("button", { type: "button", "aria-label": `remove the filter ${one.label}`, onclick: () => filter(key, null) }, "✕"));
  }));
}

function filter(key, yes) {
  if (yes === null) state.filters.delete(key);
  else state.filters.set(key, yes);
  state.count = 100;
  draw();
}

function filterFromCard(key) {
  filter(key, true);
  $("templates").scrollIntoView({ behavior: "smooth", block: "start" });
}

// The figures.

function tile(value, label, kind) {
  return make("div", { class: `tile ${kind || ""}` }, make("b", {}, number(value)), make("span", {}, label));
}

function share(key, name, part, whole, value, kind) {
  const width = whole ? (100 * part) / whole : 0;
  return make("button", { type: "button", class: "share", title: name, onclick: () => filterFromCard(key) },
    make("span", { class: "name" }, name),
    make("span", { class: "track" }, make("i", { class: kind, style: `width:${width.toFixed(1)}%` })),
    make("span", { class: "value" }, value));
}

function card(title, note, rows, most) {
  if (!rows.length) return null;
  const made = make("div", { class: "card" }, make("h3", {}, title, " ", make("small", {}, note)), rows.slice(0, most));
  const rest = rows.slice(most);
  if (rest.length) made.append(make("button", { type: "button", class: "rest", onclick: (event) => event.target.replaceWith(...rest) }, `${rest.length} more`));
  return made;
}

function drawFigures() {
  const tally = data.tally;
  $("headline").textContent = `${data.headline}.`;
  const states = tally.statuses;
  $("tiles").append(...[
    tile(tally.files, "files"), tile(tally.templates, "templates"), tile(tally.families, "families"),
    states.no_template ? tile(states.no_template, "without a template") : null,
    states.error ? tile(states.error, "unreadable", "error") : null,
    states.not_evaluated ? tile(states.not_evaluated, "not evaluated", "error") : null,
    tile(templates.filter((one) => one.errors).length, "templates with errors"),
  ].filter(Boolean));
  const entries = (object) => Object.entries(object);
  const families = entries(tally.by_family).sort(([a], [b]) => (a === data.no_family) - (b === data.no_family));
  $("cards").append(...[
    card("Rules by reach", "files", entries(tally.rules).map(([code, one]) =>
      share(`rule ${code}`, `${code} ${one.name}`, one.files, tally.statuses.probed, `${number(one.files)} · ${percent(one.files, tally.statuses.probed)}`, one.severity)), 12),
    card("Prefix laws broken", "templates", entries(tally.laws).map(([law, one]) =>
      share(`law ${law}`, words(law), one.broken, one.of, `${number(one.broken)} · ${percent(one.broken, one.of)}`, "broken")), 12),
    card("llama.cpp's chat_template_caps", "templates", entries(tally.caps).map(([name, one]) =>
      share(`caps ${name}`, words(name), one.yes, one.of, `${number(one.yes)} · ${percent(one.yes, one.of)}`)), 12),
    card("Observed", "templates that can", entries(tally.observed).map(([name, one]) =>
      share(`observed ${name}`, words(name), one.yes, one.of, `${number(one.yes)} · ${percent(one.yes, one.of)}`)), 12),
    card("Families", "files", families.map(([name, one]) =>
      share(`family ${name}`, name, one.files, tally.statuses.probed, `${number(one.files)} · ${percent(one.files, tally.statuses.probed)}`)), 12),
    card("The ten worst", "by files affected", tally.worst.filter((one) => bySha.has(one.sha256)).map((one) =>
      make("button", { type: "button", class: "share", title: one.first, onclick: () => open(one.sha256) },
        make("span", { class: "name" }, shortened(one.first)), make("span", { class: "value" }, counted(one.errors, "error")),
        make("span", { class: "value" }, counted(one.files, "file")))), 10),
  ].filter(Boolean));
  const groups = new Map();
  for (const one of facets.values()) {
    if (!groups.has(one.group)) groups.set(one.group, make("optgroup", { label: one.group }));
    groups.get(one.group).append(make("option", { value: one.key }, one.label));
  }
  $("facet").append(...groups.values());
  if (data.troubles.length) {
    $("troubles").hidden = false;
    $("troubles").querySelector("tbody").append(...data.troubles.map(([id, status, why]) =>
      make("tr", {}, make("td", {}, id), make("td", {}, status.replace("_", " ")), make("td", {}, why))));
  }
}

// One template.

async function unpack(sha) {
  const packed = $(sha);
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

async function open(sha) {
  const one = bySha.get(sha);
  const dialog = $("detail");
  dialog.replaceChildren(top(one));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  history.replaceState(null, "", `#${sha}`);
  let detail = null;
  try {
    detail = await unpack(sha);
  } catch (error) {
    dialog.append(part("Details", make("p", { class: "note" }, `cannot be unpacked here: ${error.message}`)));
  }
  if (location.hash !== `#${sha}`) return;
  if (detail) dialog.append(...parts(one, detail).filter(Boolean));
  dialog.append(part(`In ${counted(one.files, "file")}`,
    make("p", { class: "note" }, `sha256 ${one.sha}`),
    make("ul", { class: "places" }, one.places.map((place) => make("li", {}, place)), one.files > one.places.length ? make("li", {}, `and ${number(one.files - one.places.length)} more`) : null)));
}

function top(one) {
  const said = [one.family, `${number(one.bytes)} bytes`, one.report === "complete" ? null : one.report, `sha256 ${one.sha.slice(0, 12)}`];
  return make("div", { class: "top" },
    make("div", {}, make("h2", { id: "detail-title" }, shortened(one.id)), make("p", {}, said.filter(Boolean).join(" · "))),
    make("button", { type: "button", class: "close", onclick: () => $("detail").close() }, "Close"));
}

function part(title, ...children) {
  return make("div", { class: "part" }, make("h3", {}, title), children);
}

function parts(one, detail) {
  const report = detail.report;
  return [findings(report), laws(report), capabilities(report), engines(report), prompts(detail.renders), source(detail)];
}

function lineLink(line) {
  return make("button", { type: "button", class: "line-link", onclick: () => {
    const target = $("detail").querySelector(`.source [data-line="${line}"]`);
    if (!target) return;
    for (const other of $("detail").querySelectorAll(".aim")) other.classList.remove("aim");
    target.classList.add("aim");
    target.scrollIntoView({ block: "center", behavior: "smooth" });
  } }, `line ${line}`);
}

function findings(report) {
  if (!report.findings.length) return part("Findings", make("p", { class: "note" }, "None."));
  return part("Findings", report.findings.map((found) => make("div", { class: `finding ${found.severity}` },
    make("span", { class: `tag ${found.severity}` }, found.severity), " ",
    make("b", {}, `${found.code} ${found.name}`), found.line === null ? "" : " ", found.line === null ? null : lineLink(found.line),
    make("p", {}, found.message),
    make("p", { class: "to-do" }, `→ ${found.suggestion}`),
    found.engines.length ? make("p", { class: "note" }, `seen on ${found.engines.join(", ")}${found.also.length ? `; also ${found.also.join(", ")}` : ""}`) : null,
    found.evidence.length ? make("details", {}, make("summary", {}, `evidence (${found.evidence.length})`), found.evidence.map((key) => evidence(report.evidence[key]))) : null)));
}

function evidence(piece) {
  if (!piece) return null;
  return make("div", { class: "evidence" },
    `${piece.conversation} on ${piece.engine}:${piece.path}: ${piece.outcome.replace(/_/g, " ")}`, piece.line === null ? "" : ", ", piece.line === null ? null : lineLink(piece.line),
    piece.excerpt ? make("pre", {}, piece.excerpt) : null,
    make("pre", { class: "code" }, `$ ${piece.repeat}`));
}

function laws(report) {
  if (!report.prefix) return null;
  return part("Prefix stability", make("p", { class: "note" }, "How much of a prompt is still there when the conversation goes on: green is kept, red is computed again."),
    report.prefix.laws.map((law) => {
      const known = law.holds !== null;
      const kept = known && law.of ? (100 * law.shared) / law.of : law.holds ? 100 : 0;
      return make("div", { class: "law" },
        make("span", {}, words(law.law)),
        make("span", { class: known && !law.holds ? "track lost" : "track" }, known ? make("i", { class: "held", style: `width:${kept.toFixed(1)}%` }) : null),
        make("span", { class: "value" }, known ? (law.holds ? "holds" : `${number(law.shared)} of ${number(law.of)}`) : "not judged"),
        law.cause ? make("span", { class: "cause" }, words(law.cause), law.line === null ? "" : ", ", law.line === null ? null : lineLink(law.line)) : null);
    }));
}

function capabilities(report) {
  const flags = report.caps.flags;
  const observed = Object.entries(report.observed);
  const mark = (value) => { const [kind, sign] = marks.caps(value); return make("span", { class: kind }, sign); };
  const caps = make("div", {}, make("p", { class: "note" }, `chat_template_caps of llama.cpp ${report.caps.version}`),
    flags ? make("table", { class: "facts" }, make("tbody", {}, Object.entries(flags).map(([name, value]) => make("tr", {}, make("td", {}, mark(value), " ", words(name))))))
      : make("p", {}, report.caps.error ? report.caps.error.message : "none"));
  const ours = make("div", {}, make("p", { class: "note" }, "observed, on bare transformers unless it says otherwise"),
    make("table", { class: "facts" }, make("tbody", {}, observed.map(([name, seen]) => make("tr", {},
      make("td", {}, mark(answers[seen.answer] ?? null), " ", words(name)),
      make("td", {}, seen.reason, Object.entries(seen.by_path).map(([path, answer]) => ` (${path}: ${answer})`)))))));
  return part("Capabilities", make("div", { class: observed.length ? "split" : "" }, caps, observed.length ? ours : null));
}

function engines(report) {
  return part("Engines", make("table", { class: "facts" }, make("tbody", {}, report.engines.map((engine) => make("tr", {},
    make("td", {}, `${engine.id} ${engine.version} ${engine.path}`),
    make("td", {}, engine.loads ? `renders ${engine.rendered} of ${engine.of} conversations` : "does not load it",
      engine.error ? `; first error: ${engine.error.message.split("\n")[0]}` : "", engine.error && engine.error.line !== null ? " " : "",
      engine.error && engine.error.line !== null ? lineLink(engine.error.line) : null))))));
}

function prompts(renders) {
  if (!renders.length) return null;
  const shown = make("div", {});
  const tabs = make("div", { class: "tabs" }, renders.map((render) => make("button", { type: "button", onclick: (event) => show(render, event.target) }, words(render.conversation))));
  function show(render, button) {
    for (const other of tabs.children) other.setAttribute("aria-pressed", String(other === button));
    shown.replaceChildren(...(render.error ? [make("p", { class: "note" }, `${render.engine}: ${render.error}`)] : prompt(render)));
  }
  show(renders[0], tabs.children[0]);
  return part("Prompts by origin", make("p", { class: "note" }, `On bare ${renders[0].engine}: coloured what the request brought, grey what the template wrote.`), tabs, shown);
}

function prompt(render) {
  const colours = new Map();
  const text = make("pre", { class: "prompt" });
  for (const [written, origin] of render.parts) {
    if (origin === null) {
      text.append(visible(written));
      continue;
    }
    if (!colours.has(origin)) colours.set(origin, colours.size % 8);
    text.append(make("mark", { class: `o${colours.get(origin)}`, title: origin }, written));
  }
  return [text, make("div", { class: "legend" }, [...colours].map(([origin, colour]) => make("mark", { class: `o${colour}` }, origin)))];
}

function source(detail) {
  const coverage = detail.report.coverage;
  const missed = new Set(coverage ? coverage.lines_never_reached : []);
  const hits = new Map();
  for (const found of detail.report.findings) if (found.line !== null) hits.set(found.line, `${hits.get(found.line) || ""}${found.code} `);
  const lines = detail.source.split("\n").map((text, index) => make("div", {
    "data-line": index + 1,
    class: [missed.has(index + 1) ? "missed" : "", hits.has(index + 1) ? "hit" : ""].join(" ").trim() || null,
    title: [hits.get(index + 1), missed.has(index + 1) ? "begins a branch that no conversation reached" : ""].filter(Boolean).join("; ") || null,
  }, text));
  const said = coverage ? `${coverage.reached} of ${coverage.branches} branches reached; the others begin on the shaded lines.` : "";
  return part("Source", said ? make("p", { class: "note" }, said) : null, make("div", { class: "source" }, lines));
}

// Events.

let typing = 0;
$("search").addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => { state.search = event.target.value; state.count = 100; draw(); }, 120);
});
$("facet").addEventListener("change", (event) => {
  if (event.target.value) filter(event.target.value, true);
  event.target.value = "";
});
$("more").addEventListener("click", () => { state.count += 400; draw(); });
$("detail").addEventListener("click", (event) => { if (event.target === event.currentTarget) event.currentTarget.close(); });
$("detail").addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
drawFigures();
draw();
if (bySha.has(location.hash.slice(1))) open(location.hash.slice(1));
