// A text's words and topics, as `transform` finds them: tertulia/corpus/tokens.py and tertulia/kernels/lda/fold_in.py.

// How a text is cut: `reader.pattern` is the model's own, `reader.stop` has those of its words that are left out.
function makeReader(reader, words) {
  const index = new Map(words.map((word, number) => [word, number]));
  const unwanted = new Set(reader.stop);
  const lower = (text) => {
    if (!reader.lowercase) return text;
    return (reader.dotless ? text.replaceAll("İ", "i").replaceAll("I", "ı") : text).toLowerCase();
  };
  // One form for é typed in two ways and for the three apostrophes; soft hyphens are invisible.
  const normal = (text) => text.normalize("NFC").replace(/[’ʼ]/g, "'").replaceAll("\u00ad", "");

  // The text as it was understood, and its tokens: where each begins and ends, and its number, -1 for unknown words.
  return function read(text) {
    const whole = normal(text);
    const folded = lower(whole);
    const found = [];
    for (const match of folded.matchAll(new RegExp(reader.pattern, "gu"))) {
      const word = match[1];
      const short = [...word].length < reader.min_length;
      if (short || unwanted.has(reader.lowercase ? word : word.toLowerCase())) continue;
      found.push({ start: match.index, end: match.index + word.length, word: index.get(word) ?? -1 });
    }
    return { text: folded.length === whole.length ? whole : folded, found };
  };
}

// Shares of topics in a text: EM for the MAP estimate, every third step of which follows the curve of the last two.
// `rows` are the topics' words, `known` the numbers of the text's words.
function foldIn(known, rows, alpha, iterations = 100, tolerance = 0.02) {
  const K = rows.length;
  const counts = new Map();
  for (const word of known) counts.set(word, (counts.get(word) ?? 0) + 1);
  const bag = [];
  for (const [word, count] of counts) {
    const peak = rows.reduce((most, row) => Math.max(most, row[word]), 0);
    if (peak > 0) bag.push([Float64Array.from(rows, (row) => faint(row[word] / peak)), count]);
  }
  let theta = new Float64Array(K).fill(1);
  let before = theta;
  let least = 0;
  for (let step = 0; step < iterations; step++) {
    const ahead = advance(theta, bag, alpha);
    // The kernel's vectors are padded to sixteen lanes, which lose their ones in the first step.
    let moved = step === 0 ? (16 - (K % 16)) % 16 : 0;
    for (let k = 0; k < K; k++) moved += Math.abs(ahead[k] - theta[k]);
    if (step === 0) least = tolerance * sum(ahead);
    if (moved <= least || step === iterations - 1) {
      theta = ahead;
      break;
    }
    if (step > 0 && step % 2 === 0) theta = lookAhead(before, theta, ahead, alpha);
    else [before, theta] = [theta, ahead];
  }
  const whole = sum(theta);
  return theta.map((share) => share / whole);
}

const faint = (share) => (share >= 1e-20 ? share : 0);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

function advance(theta, bag, alpha) {
  const pull = new Float64Array(theta.length);
  for (const [column, count] of bag) {
    let mass = 0;
    for (let k = 0; k < theta.length; k++) mass += theta[k] * column[k];
    if (mass > 0) for (let k = 0; k < theta.length; k++) pull[k] += (count / mass) * column[k];
  }
  return pull.map((value, k) => alpha[k] + theta[k] * value);
}

function lookAhead(before, theta, ahead, alpha) {
  const move = theta.map((value, k) => value - before[k]);
  const bend = ahead.map((value, k) => value - theta[k] - move[k]);
  const squares = (vector) => vector.reduce((total, value) => total + value * value, 0);
  const bent = squares(bend);
  const far = bent > 0 ? Math.min(Math.max(Math.sqrt(squares(move) / bent), 1), 100) : 1;
  return before.map((value, k) => Math.max(alpha[k], value + far * (2 * move[k] + far * bend[k])));
}
