// The views: a map, similarity of topics, two models side by side, trends. Each draws into its panel.

const VIEWS = {
  map: { title: "Map", draw: drawMap },
  alike: { title: "Alike", draw: drawAlike },
  text: { title: "Read a text", draw: drawText },
  compare: { title: "Two models", draw: drawCompare, needs: "compare" },
  trends: { title: "Trends", draw: drawTrends, needs: "trends" },
  documents: { title: "Documents", draw: drawDocuments, needs: "documents" },
};

function makeViews() {
  makeTopic();
  page.views = Object.keys(VIEWS).filter((name) => !VIEWS[name].needs || page.model.facts[VIEWS[name].needs]);
  page.view = page.views[0];
  const tab = (name) => h("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "view", onclick: () => show(name),
  }, VIEWS[name].title);
  $("tabs").append(...page.views.map(tab));
  $("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const { length } = page.views;
    show(page.views[(page.views.indexOf(page.view) + step + length) % length]);
    $(`tab-${page.view}`).focus();
    event.preventDefault();
  });
  follow();
}

// Drawings fill the width of their panel, and are drawn again when it changes.
function follow() {
  let width = $("view").clientWidth;
  new ResizeObserver(() => {
    if ($("view").clientWidth === width) return;
    width = $("view").clientWidth;
    drawView();
    drawShares();
  }).observe($("view"));
}

function show(name) {
  page.view = name;
  $("view").replaceChildren();
  drawView();
}

function drawView() {
  for (const name of page.views) {
    $(`tab-${name}`).setAttribute("aria-selected", String(name === page.view));
    $(`tab-${name}`).tabIndex = name === page.view ? 0 : -1;
  }
  $("view").setAttribute("aria-labelledby", `tab-${page.view}`);
  VIEWS[page.view].draw($("view"));
}

// ---- the map: topics with similar words stand close ----------------------------------------------------------------------

const widthOf = (panel) => Math.max(300, Math.min(860, panel.clientWidth));

function drawMap(panel) {
  const { model, selected } = page;
  const WIDE = widthOf(panel);
  const [HIGH, EDGE] = [Math.max(320, Math.min(600, 0.8 * WIDE)), WIDE < 480 ? 34 : 56];
  const places = model.facts.places;
  const whole = [0, 1].map((axis) => {
    const all = places.map((place) => place[axis]);
    return [Math.min(...all), Math.max(...all)];
  });
  const scale = Math.min((WIDE - 2 * EDGE) / (whole[0][1] - whole[0][0] || 1), (HIGH - 2 * EDGE) / (whole[1][1] - whole[1][0] || 1));
  const middle = whole.map(([low, high]) => (low + high) / 2);
  const most = Math.max(...model.shown.map((topic) => topic.share));
  const points = model.shown.map((topic) => {
    const mean = [0, 1].map((axis) => sum(topic.members.map((k) => places[k][axis])) / topic.members.length);
    const radius = model.facts.weights ? Math.max(9, WIDE / 24 * Math.sqrt(topic.share / most)) : 12;
    return { topic, radius, x: WIDE / 2 + scale * (mean[0] - middle[0]), y: HIGH / 2 - scale * (mean[1] - middle[1]) };
  });
  // During a search for a word, the opacity of a topic is its share of the word.
  const { word } = page;
  const strongest = word === null ? 1 : Math.max(...model.shown.map((topic) => model.shareOfWord(topic, word)), 1e-12);
  const strength = (topic) => (word === null ? null : (0.04 + (0.6 * model.shareOfWord(topic, word)) / strongest).toFixed(3));
  const look = (topic) => `point${word === null ? " plain" : ""}${topic === selected ? " chosen" : ""}`;
  const circles = points.map(({ topic, x, y, radius }) => h("g", { class: look(topic), onclick: () => select(topic.k) },
    h("circle", { cx: x, cy: y, r: radius, "fill-opacity": strength(topic) }), h("title", {}, `${topic.k}: ${clean(model.label(topic, 6), 80)}`)));
  const title = `Map of ${points.length} topics. The list of topics offers the same actions.`;
  panel.replaceChildren(
    h("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": title, class: "map" }, circles, labels(points, WIDE, HIGH)),
    h("p", { class: "soft" }, `Topics with similar words stand close${model.facts.weights ? "; the larger, the heavier" : ""}${word === null ? "" : `; the stronger, the more of “${clean(model.words[word], 24)}”`}. `,
      model.facts.faithful === null ? "" : `Correlation of distances on the map with true ones: ${model.facts.faithful.toFixed(2)}.`));
}

// Numbers in circles, names beside them where there is room: of the chosen topic first, then of heavy ones.
function labels(points, WIDE, HIGH) {
  const taken = points.map(({ x, y, radius }) => [x - radius, y - radius, x + radius, y + radius]);
  const order = [...points].sort((a, b) => (b.topic === page.selected) - (a.topic === page.selected) || b.radius - a.radius);
  const free = (box) => box[0] > 0 && box[2] < WIDE && box[1] > 0 && box[3] < HIGH
    && !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
  return order.flatMap(({ topic, x, y, radius }) => {
    const text = nameOf(topic, 22);
    const width = 7 * [...text].length + 4;
    const sides = [[x + radius + 3, y - 8, "start"], [x - radius - 3 - width, y - 8, "end"], [x - width / 2, y + radius + 1, "middle"], [x - width / 2, y - radius - 17, "middle"]];
    const inside = radius >= 9 ? h("text", { x, y: y + 4, "text-anchor": "middle", class: "inside" }, String(topic.k)) : null;
    const side = sides.find(([left, top]) => free([left, top, left + width, top + 16]));
    if (!side) return [inside].filter(Boolean);
    const [left, top, anchor] = side;
    taken.push([left, top, left + width, top + 16]);
    const at = { start: left, end: left + width, middle: x }[anchor];
    return [inside, h("text", { x: at, y: top + 12, "text-anchor": anchor, class: "halo" }, text)].filter(Boolean);
  });
}

// ---- how alike topics are, with the tree of their merging ---------------------------------------------------------------

const MOST_ALIKE = 60;

function drawAlike(panel) {
  const { model } = page;
  const topics = model.shown.slice(0, MOST_ALIKE);
  const n = topics.length;
  if (n < 2) {
    panel.replaceChildren(h("p", {}, "There is only one topic."));
    return;
  }
  const likeness = topics.map(() => new Float64Array(n));
  for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) likeness[i][j] = likeness[j][i] = model.likeness(topics[i], topics[j]);
  const tree = cluster(likeness);
  const order = leaves(tree);
  const [left, right] = [142, 70];
  const size = Math.max(10, Math.min(24, (widthOf(panel) - left - right) / n));
  const pairs = likeness.flatMap((row, i) => [...row].filter((_, j) => j !== i));
  const [least, most] = [Math.min(...pairs), Math.max(...pairs)];
  const strength = (alike) => (0.04 + (0.96 * (alike - least)) / (most - least || 1)).toFixed(3);
  const cells = order.flatMap((i, row) => order.map((j, column) => h("rect", {
    x: left + column * size, y: row * size, width: size - 0.5, height: size - 0.5, "data-i": i, "data-j": j,
    class: i === j ? "track" : "f1", "fill-opacity": i === j ? 1 : strength(likeness[i][j]),
  })));
  const names = order.map((i, row) => h("text", {
    x: left - 6, y: (row + 0.5) * size + 4, "text-anchor": "end", class: topics[i] === page.selected ? "chosen" : "", "data-i": i,
  }, `${topics[i].k}: ${nameOf(topics[i], 16)}`));
  const said = h("p", { class: "soft", "aria-live": "polite" }, `The stronger the colour, the more similar two topics are (1 minus Hellinger distance; largest: ${most.toFixed(2)}).`,
    model.shown.length > n ? ` Of ${model.shown.length} topics these are the ${n} first.` : "");
  const point = (event) => {
    const { i, j } = event.target.dataset;
    if (j !== undefined && i !== j) said.textContent = `Topics ${topics[i].k} and ${topics[j].k}: ${likeness[i][j].toFixed(2)}`;
  };
  panel.replaceChildren(
    h("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Similarity of topics" },
      h("svg", {
        viewBox: `0 0 ${left + n * size + right} ${n * size}`, width: left + n * size + right, role: "img", class: "alike", onmouseover: point,
        onclick: (event) => event.target.dataset.i !== undefined && select(topics[event.target.dataset.i].k),
        "aria-label": "Similarity of topics, similar ones side by side; the most similar topics are listed with the words of a topic",
      }, cells, names, h("path", { class: "l0 thin", d: branches(tree, order, size, left + n * size + 4, right - 8) }))), said);
}

// Average linkage: repeatedly join the two most similar groups.
function cluster(likeness) {
  let groups = likeness.map((_, i) => ({ members: [i], height: 0 }));
  const between = (a, b) => sum(a.members.flatMap((i) => b.members.map((j) => likeness[i][j]))) / (a.members.length * b.members.length);
  while (groups.length > 1) {
    let best = [-1, 0, 1];
    for (let a = 0; a < groups.length; a++) for (let b = a + 1; b < groups.length; b++) {
      const alike = (groups[a].known ??= new Map()).get(groups[b]) ?? between(groups[a], groups[b]);
      groups[a].known.set(groups[b], alike);
      if (alike > best[0]) best = [alike, a, b];
    }
    const [alike, a, b] = best;
    const joined = { members: [...groups[a].members, ...groups[b].members], height: 1 - alike, parts: [groups[a], groups[b]] };
    groups = groups.filter((_, i) => i !== a && i !== b).concat([joined]);
  }
  return groups[0];
}

const leaves = (tree) => (tree.parts ? tree.parts.flatMap(leaves) : tree.members);

function branches(tree, order, size, left, width) {
  const heights = (node) => (node.parts ? [node.height, ...node.parts.flatMap(heights)] : []);
  const [low, high] = [Math.min(...heights(tree)), Math.max(...heights(tree))];
  const at = (node) => (node.parts ? left + (0.1 + (0.9 * (node.height - low)) / (high - low || 1)) * width : left);
  const walkTree = (node) => {
    if (!node.parts) return [(order.indexOf(node.members[0]) + 0.5) * size, ""];
    const [[y1, d1], [y2, d2]] = node.parts.map(walkTree);
    const [x, x1, x2] = [at(node), at(node.parts[0]), at(node.parts[1])];
    return [(y1 + y2) / 2, `${d1}${d2}M${x1.toFixed(1)} ${y1.toFixed(1)}H${x.toFixed(1)}V${y2.toFixed(1)}H${x2.toFixed(1)}`];
  };
  return walkTree(tree)[1];
}

// ---- two models ------------------------------------------------------------------------------------------------------------

function drawCompare(panel) {
  const { model } = page;
  const { rows, title } = model.facts.compare;
  const item = (row) => {
    const here = row.topic === null ? null
      : h("button", { type: "button", class: "link", onclick: () => select(row.topic, true) }, `${row.topic}: ${nameOf(model.topic(row.topic), 30)}`);
    const there = row.other === null ? null : h("span", {}, `${row.other}${row.other_name ? `: ${clean(row.other_name, 30)}` : ""} there`);
    const words = [["both", row.both], ["here", row.here], ["there", row.there]].filter(([, some]) => some);
    return h("li", {},
      h("div", { class: "pair" }, h("span", {}, here, here && there ? " and " : "", there), bar(row.similarity), row.similarity.toFixed(2)),
      words.map(([where, some]) => h("p", { class: "soft" }, h("b", {}, where), ` ${clean(some, 200)}`)));
  };
  const block = (state, said) => {
    const found = rows.filter((row) => row.state === state);
    return found.length === 0 ? [] : [h("h3", {}, `${said} (${found.length})`), h("ol", { class: "pairs" }, found.map(item))];
  };
  panel.replaceChildren(h("p", { class: "soft" }, `Compared with ${clean(title, 80)}, by the weighted Jaccard similarity of their top words, one to one.`),
    ...block("matched", "In both models"), ...block("only here", "Only here"), ...block("only there", "Only there"));
}

// ---- trends over time and by label -----------------------------------------------------------------------------------------

function drawTrends(panel) {
  const { facts, shown } = page.model;
  const { labels: groups, periods, by } = facts.trends;
  const heavy = [page.selected, ...shown.filter((topic) => topic !== page.selected)].slice(0, 6);
  const parts = [];
  if (periods) {
    const legend = heavy.map((topic, i) => h("li", {}, h("span", { class: `swatch s${i + 1}` }), `${topic.k}: ${nameOf(topic, 30)}`));
    parts.push(h("h3", {}, `Share by ${by}`), lineChart(periods, heavy, `Shares of ${heavy.length} topics by ${by}`, widthOf(panel)), h("ul", { class: "legend" }, legend));
  }
  if (groups) {
    const largestOf = (shares) => [...shown].sort((a, b) => shareIn(b, shares) - shareIn(a, shares)).slice(0, 3);
    const row = ({ name, documents, shares }) => h("tr", {}, h("td", {}, clean(name ?? "without a label", 40)), h("td", { class: "r" }, String(documents)),
      h("td", {}, largestOf(shares).map((topic) => `${topic.k}: ${nameOf(topic, 24)} ${percent(shareIn(topic, shares), 0)}`).join("; ")));
    parts.push(h("h3", {}, "By label"), h("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "By label" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "label"), h("th", { scope: "col", class: "r" }, "documents"), h("th", { scope: "col" }, "its largest topics"))),
      h("tbody", {}, groups.map(row)))));
  }
  panel.replaceChildren(...parts);
}

function lineChart(periods, topics, title, width) {
  const [height, left, bottom] = [220, 44, 24];
  const shares = topics.map((topic) => periods.map((period) => (period.documents ? shareIn(topic, period.shares) : null)));
  const most = Math.max(...shares.flat().filter((share) => share !== null), 1e-9);
  const x = (i) => left + (periods.length > 1 ? (i * (width - left - 24)) / (periods.length - 1) : (width - left) / 2);
  const y = (share) => 8 + (1 - share / most) * (height - bottom - 8);
  const lines = shares.flatMap((row, t) => row.map((share, i) => share === null ? null : [
    i > 0 && row[i - 1] !== null ? h("line", { class: `l${t + 1}`, x1: x(i - 1), y1: y(row[i - 1]), x2: x(i), y2: y(share) }) : null,
    h("circle", { class: `f${t + 1}`, cx: x(i), cy: y(share), r: 3 }, h("title", {}, `${topics[t].k}, ${periods[i].name}: ${percent(share)}`)),
  ]));
  const grid = [0, 0.5, 1].map((part) => [h("line", { class: "grid", x1: left, x2: width, y1: y(part * most), y2: y(part * most) }),
    h("text", { class: "soft", x: left - 6, y: y(part * most) + 4, "text-anchor": "end" }, percent(part * most, most < 0.1 ? 1 : 0))]);
  // Numbers at the ends of lines repeat the colours, spaced by one line of text.
  const ends = shares.flatMap((row, t) => (row.at(-1) === null ? [] : [{ t, at: y(row.at(-1)) }])).sort((a, b) => a.at - b.at);
  ends.forEach((end, i) => { end.at = Math.max(end.at, i ? ends[i - 1].at + 11 : 0); });
  const numbers = topics.length > 1 ? ends.map(({ t, at }) => h("text", { x: x(periods.length - 1) + 6, y: at + 4 }, String(topics[t].k))) : [];
  const step = Math.ceil(periods.length / Math.max(1, Math.floor((width - left) / 70)));
  const names = periods.map(({ name }, i) => i % step ? null : h("text", { class: "soft", x: x(i), y: height - 4, "text-anchor": "middle" }, clean(name, 10)));
  return h("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "trend" }, grid, names, lines, numbers);
}
