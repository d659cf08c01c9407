// The page around the views: the list of topics, the selected topic, search, and files to save.

const $ = (id) => document.getElementById(id);
const DRAWN = new Set(["svg", "g", "circle", "rect", "text", "line", "path", "polyline", "title"]);
const STEERING = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu;

// An element. Children that are texts become text, never HTML.
function h(tag, attributes = {}, ...children) {
  const made = DRAWN.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(2).filter((child) => child != null));
  return made;
}

// Make other people's text plain: escape control characters, and cut long texts.
function clean(text, most = 60) {
  const letters = [...text.slice(0, 2 * most + 2)];
  const cut = letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join("");
  return cut.replace(STEERING, (letter) => `\\u${letter.codePointAt(0).toString(16).padStart(4, "0")}`);
}

const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const bar = (share, look = "f1") =>
  h("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("rect", { class: look, width: 100 * Math.max(0, Math.min(1, share)), height: 10 }));

const page = { model: null, selected: null, word: null, relevance: 1, views: [], documents: null };

const nameOf = (topic, most = 40) => clean(page.model.label(topic), most);

// Redraw everything; the focus stays.
function refresh() {
  const held = document.activeElement?.id;
  drawList();
  drawTopic();
  drawView();
  const left = page.model.changed ? "Not saved yet: save names, hidden and merged topics in a file." : "";
  $("unsaved").textContent = left;
  if (held && document.activeElement?.id !== held) $(held)?.focus();
}

function select(k, andFocus = false) {
  page.selected = page.model.topic(k);
  refresh();
  if (andFocus) $("topic-title").focus();
}

// ---- the list of topics, and search ----------------------------------------------------------------------------------

function drawList() {
  const { model, word } = page;
  const asked = $("search").value.trim().toLowerCase();
  const measure = word === null ? (topic) => topic.share : (topic) => model.shareOfWord(topic, word);
  let topics = [...model.shown];
  if (word !== null) topics.sort((a, b) => measure(b) - measure(a));
  else if (asked) {
    const named = topics.filter((topic) => model.label(topic, 10).toLowerCase().includes(asked));
    if (named.length || $("found").children.length === 0) topics = named;
  }
  const most = Math.max(...topics.map(measure), 1e-12);
  const known = word !== null || model.facts.weights;
  $("list").replaceChildren(...topics.map((topic) => listItem(topic, known ? measure(topic) : null, most)));
  const hidden = model.topics.filter((topic) => topic.hidden);
  $("hidden").hidden = hidden.length === 0;
  $("hidden-list").replaceChildren(...hidden.map((topic) => listItem(topic, null, 1)));
  $("hidden-title").textContent = `Hidden topics (${hidden.length})`;
  const what = model.facts.weights ? "heaviest first" : "by number";
  $("list-title").textContent = word === null ? `Topics, ${what}` : `Topics with “${clean(model.words[word], 24)}”`;
}

function listItem(topic, share, most) {
  const { model, selected } = page;
  const line = [h("span", { class: "number" }, String(topic.k)), h("span", { class: "name" }, nameOf(topic, 60))];
  const held = model.facts.parties ? partiesOf(topic) : [];
  const marks = held.map((party) => h("span", { class: "pill" }, clean(party, 12)));
  if (topic.members.length > 1) marks.push(h("span", { class: "pill" }, `of ${topic.members.join(", ")}`));
  const size = share === null ? [] : [h("span", { class: "weight" }, bar(share / most), percent(share))];
  return h("li", {}, h("button", {
    type: "button", id: `topic-${topic.k}`, "aria-current": topic === selected ? "true" : false,
    onclick: () => select(topic.k),
  }, line, size, marks.length ? h("span", { class: "marks" }, marks) : null));
}

// The parties whose released models have a topic like this one.
const HELD = 0.3;
const holding = (topic) => page.model.facts.parties.held.map((row) => Math.max(...topic.members.map((k) => row[k])));
const partiesOf = (topic) => {
  const likeness = holding(topic);
  return page.model.facts.parties.names.filter((_, r) => likeness[r] >= HELD);
};

function drawFound() {
  const { model } = page;
  const asked = $("search").value.trim().toLowerCase();
  page.word = null;
  let found = [];
  if (asked) {
    // The word itself first, then words that begin so, then frequent ones.
    const rank = (word) => (word === asked ? 0 : word.startsWith(asked) ? 1 : 2);
    const has = model.words.flatMap((word, number) => {
      const lower = word.toLowerCase();
      return lower.includes(asked) ? [{ number, rank: rank(lower), p: model.anywhere[number] }] : [];
    });
    found = has.sort((a, b) => a.rank - b.rank || b.p - a.p).slice(0, 8).map(({ number }) => number);
    const named = model.topics.some(({ k }) => model.names[k].toLowerCase().includes(asked));
    if (found.length && !named) page.word = found[0];
  }
  const chips = found.map((number) => h("button", {
    type: "button", class: "chip", "aria-pressed": String(number === page.word),
    onclick: (event) => {
      page.word = page.word === number ? null : number;
      for (const chip of $("found").children) chip.setAttribute("aria-pressed", "false");
      event.target.setAttribute("aria-pressed", String(page.word === number));
      drawList();
      if (page.view === "map") drawView();
    },
  }, clean(model.words[number], 24)));
  $("found").replaceChildren(...chips);
  drawList();
  if (page.view === "map") drawView();
  const best = page.word === null ? null : [...model.shown].sort((a, b) => model.shareOfWord(b, page.word) - model.shareOfWord(a, page.word))[0];
  $("said").textContent = !asked ? "" : best ? `Topic ${best.k} has the most of “${clean(model.words[page.word], 24)}”.`
    : found.length ? `${found.length} words, and topics of this name.`
    : $("list").children.length ? "Topics of this name." : "No topic has such a word or name.";
}

// Arrow keys move the focus in a list; Enter selects.
function walk(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const buttons = [...event.currentTarget.querySelectorAll("button")];
  buttons[buttons.indexOf(document.activeElement) + step]?.focus();
  event.preventDefault();
}

// ---- what can be saved -------------------------------------------------------------------------------------------------

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// A table as CSV; cells that a spreadsheet would evaluate stay text.
function csv(rows) {
  const cell = (value) => {
    const text = String(value ?? "");
    return `"${(typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function saveTopics() {
  const { model, relevance } = page;
  const words = (topic) => model.topWords(topic, relevance, 20).map(({ word }) => model.words[word]).join(" ");
  const rows = model.shown.map((topic) => [topic.k, model.names[topic.k], model.facts.weights ? topic.share : "", words(topic)]);
  download("topics.csv", "text/csv", csv([["topic", "name", "weight", "words"], ...rows]));
}

function saveNames() {
  download("names.json", "application/json", `${JSON.stringify(page.model.edits(), null, 1)}\n`);
  page.model.changed = false;
  refresh();
}

async function readNames(event) {
  const [file] = event.target.files;
  if (!file) return;
  try {
    page.model.apply(JSON.parse(await file.text()));
    page.model.changed = false;
    page.selected = page.model.topic(page.selected.k);
    refresh();
    $("unsaved").textContent = `Names were read from ${clean(file.name, 40)}.`;
  } catch (error) {
    $("unsaved").textContent = `${clean(file.name, 40)} cannot be used: ${clean(error.message, 120)}.`;
  }
  event.target.value = "";
}

// ---- start ---------------------------------------------------------------------------------------------------------------

async function start() {
  const facts = JSON.parse($("facts").textContent);
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old for it: use one of 2023 or later");
  const words = await inflateJson(facts.words);
  page.model = new Model(facts, words, unpack(await inflate(facts.phi), facts.alpha.length, words.length));
  page.documents = facts.documents ? await inflateJson(facts.documents) : null;
  page.read = facts.reader.why ? null : makeReader(facts.reader, words);
  page.selected = page.model.shown[0] ?? page.model.topics[0];
  $("search").addEventListener("input", drawFound);
  for (const list of [$("list"), $("hidden-list")]) list.addEventListener("keydown", walk);
  $("save-topics").addEventListener("click", saveTopics);
  $("save-names").addEventListener("click", saveNames);
  $("read-names").addEventListener("change", readNames);
  $("print").addEventListener("click", () => print());
  addEventListener("beforeprint", () => ($("all").open = true));
  addEventListener("beforeunload", (event) => page.model.changed && event.preventDefault());
  makeViews();
  $("all").open = false;
  $("tools").hidden = false;
  refresh();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  $("trouble").textContent = `The tools of this page could not start: ${error.message}. Only the table below is available.`;
  $("trouble").hidden = false;
  throw error;
});
