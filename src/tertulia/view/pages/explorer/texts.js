// Texts: a pasted one, and the documents that the page contains.

const COLOURS = 6;

function drawText(panel) {
  const { why, error } = page.model.facts.reader;
  if (why) {
    panel.replaceChildren(h("p", {}, clean(why, 300)));
    return;
  }
  if (!$("pasted")) {
    panel.replaceChildren(
      h("label", { for: "pasted" }, "Paste or write a text; nothing leaves this page"),
      h("textarea", { id: "pasted", rows: 6, spellcheck: "false", oninput: readPasted }),
      h("div", { id: "found-shares", "aria-live": "polite" }), h("div", { id: "found-words", class: "reading" }),
      h("p", { class: "soft" }, error ? `Shares may differ from those of the model itself by about ${error.toPrecision(1)}.` : "Shares equal those of the model’s `transform`."));
    $("pasted").value = page.pasted ?? "";
  }
  readPasted();
}

// Shares of what is shown as topics now, in their order.
function sharesOf(text) {
  const { topics } = page.model;
  const read = page.read(text);
  const known = read.found.filter(({ word }) => word >= 0).map(({ word }) => word);
  return { ...read, known, shares: foldIn(known, topics.map(({ row }) => row), topics.map(({ alpha }) => alpha)) };
}

function readPasted() {
  const { model } = page;
  page.pasted = $("pasted").value;
  if (!page.pasted.trim()) {
    $("found-shares").replaceChildren();
    $("found-words").replaceChildren();
    return;
  }
  const { text, found, known, shares } = sharesOf(page.pasted);
  const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, COLOURS);
  const said = known.length ? `${known.length} of ${found.length} words are known to the model.`
    : "The model knows none of these words: the shares are its prior.";
  const rows = order.map((place, i) => h("tr", { "data-topic": model.topics[place].k, "data-share": shares[place] },
    h("td", { class: "word" }, h("button", { type: "button", class: "link", onclick: () => select(model.topics[place].k, true) }, `${model.topics[place].k}: ${nameOf(model.topics[place], 30)}`)),
    h("td", { class: "bars" }, bar(shares[place], `f${i + 1}`)), h("td", { class: "r" }, percent(shares[place]))));
  $("found-shares").replaceChildren(h("p", { class: "soft" }, said), h("table", { class: "shares" }, h("tbody", {}, rows)));
  $("found-words").replaceChildren(...marked(text, found, shares, order));
}

// The text with each word's likeliest topic: its number, and its colour if it is one of the largest here.
function marked(text, found, shares, order) {
  const { topics } = page.model;
  const parts = [];
  let at = 0;
  for (const { start, end, word } of found) {
    if (word < 0) continue;
    parts.push(clean(text.slice(at, start), 4000));
    const best = largest(Float64Array.from(topics, ({ row }, place) => shares[place] * row[word]), 1)[0];
    const look = order.includes(best) ? `w w${order.indexOf(best) + 1}` : "w";
    parts.push(h("span", { class: look }, clean(text.slice(start, end), 60), h("sub", {}, String(topics[best].k))));
    at = end;
  }
  return [...parts, clean(text.slice(at), 4000)];
}

// ---- documents -----------------------------------------------------------------------------------------------------------

const MOST_SHOWN = 20;

function drawDocuments(panel) {
  if (!$("documents-search")) {
    panel.replaceChildren(
      h("div", { class: "row" }, h("label", { for: "documents-search" }, "Search the documents"),
        h("input", { id: "documents-search", type: "search", oninput: listDocuments }),
        h("button", { type: "button", id: "save-documents", onclick: saveDocuments }, "Shares as CSV")),
      h("p", { id: "documents-said", class: "soft", "aria-live": "polite" }), h("ol", { id: "documents-list", class: "documents" }));
  }
  listDocuments();
}

function listDocuments() {
  const { documents, selected } = page;
  const asked = $("documents-search").value.trim().toLowerCase();
  const share = (one) => sum(selected.members.map((k) => one.shares[k] ?? 0));
  const found = documents.rows.filter(({ text }) => !asked || text.toLowerCase().includes(asked));
  found.sort((a, b) => share(b) - share(a));
  const some = documents.total > documents.rows.length ? `; ${documents.rows.length} of ${documents.total} documents are in this page` : "";
  $("documents-said").textContent = `${found.length} documents, those nearest to topic ${selected.k} first${some}.`;
  $("documents-list").replaceChildren(...found.slice(0, MOST_SHOWN).map((one) => {
    const facts = [percent(share(one), 0), one.id, one.label, one.date].filter((fact) => fact != null).map((fact) => clean(String(fact), 40));
    const cut = one.text.length > 240;
    const body = cut ? h("details", {}, h("summary", {}, clean(one.text, 240)), h("p", {}, clean(one.text, 20_000))) : h("p", {}, clean(one.text, 240));
    return h("li", {}, h("p", { class: "soft" }, facts.join(" · ")), body);
  }));
}

function saveDocuments() {
  const { topics, names } = page.model;
  const head = ["id", "label", "date", ...topics.map(({ k }) => `topic${k}${names[k] ? `: ${names[k]}` : ""}`)];
  const rows = page.documents.rows.map((one) => [one.id, one.label, one.date, ...topics.map((topic) => sum(topic.members.map((k) => one.shares[k] ?? 0)))]);
  download("documents.csv", "text/csv", csv([head, ...rows]));
}
