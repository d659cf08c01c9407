// The selected topic: name, actions, words, nearest topics, and shares by party, label and period.

function drawTopic() {
  const { model, selected } = page;
  $("topic-title").textContent = `Topic ${selected.k}`;
  const facts = [];
  if (model.facts.weights) facts.push(`${percent(selected.share)} of ${model.facts.shares_of}`);
  if (selected.members.length > 1) facts.push(`merged of ${selected.members.join(", ")}`);
  else if (model.facts.npmi) facts.push(`NPMI ${model.facts.npmi[selected.k].toFixed(2)} on ${model.facts.npmi_documents} documents`);
  if (selected.hidden) facts.push("hidden");
  $("topic-facts").textContent = facts.join("; ");
  if (document.activeElement !== $("name")) $("name").value = clean(model.names[selected.k], 80);
  $("name").placeholder = nameOf(selected, 30);
  $("hide").textContent = selected.hidden ? "Show again" : "Hide";
  $("part").hidden = selected.members.length === 1;
  const others = model.shown.filter((topic) => topic !== selected);
  $("merge").disabled = others.length === 0 || Boolean(model.facts.neural);
  const options = others.map((topic) => h("option", { value: topic.k }, `${topic.k}: ${nameOf(topic, 30)}`));
  $("with").replaceChildren(...options);
  const near = nearest(selected, 1)[0];
  if (near) $("with").value = near.topic.k;
  drawWords();
  drawNear();
  drawShares();
}

function drawWords() {
  const { model, selected, relevance } = page;
  const tops = model.topWords(selected, relevance, 20);
  const most = Math.max(...tops.map(({ p }) => p), 1e-300);
  const row = ({ word, p, anywhere }) => h("tr", {},
    h("td", { class: "word" }, clean(model.words[word], 28)),
    h("td", { class: "bars" }, twoBars(p / most, Math.min(1, (selected.share * p) / (anywhere || 1)), p / most)),
    h("td", { class: "r" }, percent(p, 2)), h("td", { class: "r" }, percent(model.shareOfWord(selected, word), 0)));
  $("words").replaceChildren(...tops.map(row));
  const own = model.ownWords(selected).map((word) => clean(model.words[word], 24));
  $("own").textContent = own.length ? own.join(", ") : "none: it shares all its words with others";
  $("relevance-said").textContent = relevance === 1 ? "1: the likeliest words" : relevance === 0 ? "0: words of this topic alone" : String(relevance);
}

// The probability of a word; the blue part is this topic's share of all its uses.
const twoBars = (length, own) => h("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
  h("rect", { class: "f0 faint", width: 100 * length, height: 10 }), h("rect", { class: "f1", width: 100 * length * own, height: 10 }));

function nearest(topic, n) {
  const all = page.model.shown.filter((other) => other !== topic);
  const known = all.map((other) => ({ topic: other, likeness: page.model.likeness(topic, other) }));
  return known.sort((a, b) => b.likeness - a.likeness).slice(0, n);
}

function drawNear() {
  const item = ({ topic, likeness }) => h("li", {}, h("button", { type: "button", class: "link", onclick: () => select(topic.k, true) },
    `${topic.k}: ${nameOf(topic, 34)}`), h("span", { class: "r" }, likeness.toFixed(2)));
  $("near").replaceChildren(...nearest(page.selected, 4).map(item));
}

// Shares by party, by label and over time, where known.
function drawShares() {
  const { model, selected } = page;
  const parts = [];
  if (model.facts.parties) {
    const { names } = model.facts.parties;
    const rows = holding(selected).map((likeness, r) => [names[r], likeness, likeness.toFixed(2)]);
    parts.push(h("h3", {}, "In the parties’ own models"), bars(rows, 1),
      h("p", { class: "soft" }, "Similarity of a party’s nearest topic, 1 for the same words; only for models that parties released."));
  }
  const trends = model.facts.trends;
  if (trends?.labels) {
    const rows = trends.labels.map(({ name, shares }) => [name ?? "without a label", shareIn(selected, shares)]);
    const most = Math.max(...rows.map(([, share]) => share), 1e-12);
    const order = rows.sort((a, b) => b[1] - a[1]).slice(0, 12).map(([name, share]) => [name, share / most, percent(share)]);
    parts.push(h("h3", {}, "By label"), bars(order, 1));
  }
  if (trends?.periods) parts.push(h("h3", {}, `By ${trends.by}`), lineChart(trends.periods, [selected], `Share of topic ${selected.k} by ${trends.by}`, widthOf($("shares"))));
  $("shares").replaceChildren(...parts);
}

const shareIn = (topic, shares) => (shares ? sum(topic.members.map((k) => shares[k])) : 0);
const bars = (rows) => h("table", { class: "shares" }, h("tbody", {}, rows.map(([name, length, said]) => h("tr", {},
  h("td", { class: "word" }, clean(name, 30)), h("td", { class: "bars" }, bar(length)), h("td", { class: "r" }, said)))));

function makeTopic() {
  const { model } = page;
  $("name").addEventListener("change", (event) => {
    model.rename(page.selected.k, event.target.value);
    refresh();
  });
  $("hide").addEventListener("click", () => {
    model.hide(page.selected, !page.selected.hidden);
    select(page.selected.k);
  });
  $("merge").addEventListener("click", () => {
    page.selected = model.merge(page.selected, model.topic(Number($("with").value)));
    refresh();
  });
  $("part").addEventListener("click", () => {
    model.part(page.selected);
    select(page.selected.k);
    $("topic-title").focus();
  });
  $("relevance").addEventListener("input", (event) => {
    page.relevance = Number(event.target.value);
    drawWords();
  });
}
