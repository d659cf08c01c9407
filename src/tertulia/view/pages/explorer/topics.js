// The model in the page: unpacked topics, edits (names, hidden, merged), and values computed from them.

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const inflateJson = async (text) => JSON.parse(new TextDecoder().decode(await inflate(text)));

// The rows [K] of V numbers, as packed by `packing.py`.
function unpack(bytes, K, V) {
  const view = new DataView(bytes.buffer);
  let at = 0;
  const planes = (count) => {
    const width = bytes[at++];
    const numbers = new Uint32Array(count);
    for (let plane = 0; plane < width; plane++) {
      for (let i = 0; i < count; i++) numbers[i] |= bytes[at++] << (8 * plane);
    }
    return numbers;
  };
  return Array.from({ length: K }, () => {
    const row = new Float32Array(V).fill(view.getFloat32(at, true));
    const [entries, own] = [view.getUint32(at + 4, true), view.getUint32(at + 8, true)];
    at += 12;
    const gaps = planes(entries);
    const values = new Float32Array(planes(own || entries).buffer);
    const places = own ? planes(entries) : null;
    for (let i = 0, word = -1; i < entries; i++) {
      word += gaps[i] + 1;
      row[word] = values[places ? places[i] : i];
    }
    return row;
  });
}

// Topics as people see them: each is one of the model's topics, or several that were merged.
class Model {
  constructor(facts, words, rows) {
    Object.assign(this, { facts, words, rows, K: facts.alpha.length, changed: false });
    this.names = [...facts.names];
    this.hidden = new Set(facts.hidden);
    this.merged = [];
    const total = sum(facts.weights ?? facts.alpha);
    this.shares = (facts.weights ?? facts.alpha).map((weight) => weight / total);
    this.anywhere = this.mix(this.rows.map((_, k) => k), 1);
    this.regroup();
  }

  // The mixture of topics by their shares.
  mix(members, whole = sum(members.map((k) => this.shares[k]))) {
    const mixed = new Float64Array(this.words.length);
    for (const k of members) {
      const share = whole > 0 ? this.shares[k] / whole : 1 / members.length;
      for (let word = 0; word < mixed.length; word++) mixed[word] += share * this.rows[k][word];
    }
    return mixed;
  }

  regroup() {
    const later = new Set(this.merged.flatMap((group) => group.slice(1)));
    this.topics = this.rows.flatMap((row, k) => {
      if (later.has(k)) return [];
      const members = this.merged.find((group) => group[0] === k) ?? [k];
      const share = sum(members.map((member) => this.shares[member]));
      const alpha = sum(members.map((member) => this.facts.alpha[member]));
      const hidden = members.every((member) => this.hidden.has(member));
      return [{ k, members, share, alpha, hidden, row: members.length > 1 ? this.mix(members) : row }];
    });
    this.topics.sort((a, b) => (this.facts.weights ? b.share - a.share : 0) || a.k - b.k);
    this.shown = this.topics.filter((topic) => !topic.hidden);
  }

  topic(k) {
    return this.topics.find((topic) => topic.members.includes(k));
  }

  label(topic, n = 3) {
    topic.tops ??= largest(topic.row, 10).map((word) => this.words[word]);
    return this.names[topic.k] || topic.tops.slice(0, n).join(" ");
  }

  rename(k, name) {
    this.names[k] = [...name.replace(/\s+/g, " ").trim()].slice(0, 80).join("");
    this.changed = true;
  }

  hide(topic, hidden) {
    for (const k of topic.members) hidden ? this.hidden.add(k) : this.hidden.delete(k);
    this.change();
  }

  merge(topic, other) {
    const members = [...topic.members, ...other.members].sort((a, b) => a - b);
    const names = [...new Set([topic, other].map(({ k }) => this.names[k]).filter(Boolean))].join(" + ");
    this.merged = this.merged.filter((group) => !members.includes(group[0])).concat([members]);
    for (const k of members) this.names[k] = "";
    this.rename(members[0], names);
    this.change();
    return this.topic(members[0]);
  }

  part(topic) {
    this.merged = this.merged.filter((group) => group[0] !== topic.k);
    this.change();
  }

  change() {
    this.changed = true;
    this.regroup();
  }

  // What is saved, and read back by `model.edit` and by this page.
  edits() {
    const names = Object.fromEntries(this.names.map((name, k) => [k, name]).filter(([, name]) => name));
    const merged = [...this.merged].sort((a, b) => a[0] - b[0]);
    return { format: "tertulia names", model: this.facts.digest, names, hidden: [...this.hidden].sort((a, b) => a - b), merged };
  }

  apply(edits) {
    const isTopic = (k) => Number.isInteger(k) && k >= 0 && k < this.K;
    if (edits?.format !== "tertulia names" || edits.model !== this.facts.digest) throw new Error("it is of another model");
    const grouped = edits.merged.flat();
    const every = [...edits.hidden, ...grouped, ...Object.keys(edits.names).map(Number)];
    if (!every.every(isTopic) || new Set(grouped).size < grouped.length) throw new Error("it is damaged");
    this.names = this.names.map(() => "");
    for (const [k, name] of Object.entries(edits.names)) this.rename(Number(k), String(name));
    this.hidden = new Set(edits.hidden);
    this.merged = edits.merged.map((group) => [...group].sort((a, b) => a - b));
    this.regroup();
  }

  // The n words with the largest relevance (Sievert and Shirley 2014): 1 for the likeliest, 0 for the topic's own.
  topWords(topic, relevance = 1, n = 10) {
    const scores = new Float64Array(topic.row);
    for (let word = 0; relevance < 1 && word < scores.length; word++) {
      scores[word] *= this.anywhere[word] > 0 ? this.anywhere[word] ** (relevance - 1) : 0;
    }
    return largest(scores, n).map((word) => ({ word, p: topic.row[word], anywhere: this.anywhere[word] }));
  }

  // Words of which this topic has nearly all.
  ownWords(topic, n = 12, least = 0.8) {
    const scores = topic.row.map((p, word) => (topic.share * p >= least * this.anywhere[word] ? p : 0));
    return largest(scores, n).filter((word) => scores[word] > 0);
  }

  shareOfWord(topic, word) {
    return this.anywhere[word] > 0 ? (topic.share * topic.row[word]) / this.anywhere[word] : 0;
  }

  // 1 for the same words, 0 for none in common: 1 minus the Hellinger distance.
  likeness(a, b) {
    const [mine, its] = [root(a), root(b)];
    let overlap = 0;
    for (let word = 0; word < mine.length; word++) overlap += mine[word] * its[word];
    return 1 - Math.sqrt(Math.max(0, 1 - overlap));
  }
}

const root = (topic) => (topic.root ??= new Float64Array(topic.row).map(Math.sqrt));

// The places of the n largest numbers; of equal ones the first leads.
function largest(scores, n) {
  const best = [];
  for (let i = 0; i < scores.length; i++) {
    if (best.length === n && scores[i] <= scores[best[n - 1]]) continue;
    let place = best.length === n ? n - 1 : best.length;
    while (place > 0 && scores[best[place - 1]] < scores[i]) best[place] = best[--place];
    best[place] = i;
  }
  return best;
}
