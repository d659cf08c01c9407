"use strict";
// The live page: draws the snapshots of /events. Texts of others are only ever set as text.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const at = (id) => document.getElementById(id);
  const add = (node, inside) => {
    for (const one of inside.flat(9)) if (one !== null && one !== undefined) node.append(one);
    return node;
  };
  const put = (node, attributes) => {
    for (const [name, value] of Object.entries(attributes || {})) if (value !== null) node.setAttribute(name, value);
    return node;
  };
  const h = (tag, attributes, ...inside) => add(put(document.createElement(tag), attributes), inside);
  const s = (tag, attributes, ...inside) => add(put(document.createElementNS(SVG, tag), attributes), inside);
  const size = (n) => n < 1000 ? n + " B" : n < 1024 * 1000 ? (n / 1024).toFixed(1) + " kB" : (n / 1048576).toFixed(1) + " MB";
  const span = (t) => t < 90 ? Math.round(t) + " s" : t < 5400 ? Math.round(t / 60) + " min" : (t / 3600).toFixed(1) + " h";
  const bar = (share, look) => s("svg", {class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"},
    s("rect", {width: Math.max(0, Math.min(100, 100 * share)), height: 10, class: look}));
  const chart = (title, height, ...marks) => s("svg", {class: "chart", viewBox: "0 0 400 " + height, role: "img", "aria-label": title},
    s("title", {}, title), ...marks);
  const label = (x, y, text, anchor, look) => s("text", {x, y, "text-anchor": anchor || "start", class: look || "soft"}, text);

  const states = {here: "good", absent: "bad", refused: "weak", joining: "soft"};
  const levels = {clear: ["bad", "in clear"], masked: ["weak", "masked: totals only"], members: ["weak", "for members only"],
    noise: ["weak", "under noise"], free: ["f0", "public"]};

  function head(now) {
    const share = now.rounds ? now.round / now.rounds : 0;
    const facts = [now.run && "run " + now.run, now.method, now.doing && "parties: " + now.doing, now.text];
    const left = now.left === null ? null : "about " + span(now.left) + " left";
    return [
      h("h1", {}, now.title, " ", h("span", {class: "pill " + ({finished: "good", stopped: "bad"}[now.state] || "soft")}, now.state)),
      h("p", {class: "soft"}, facts.filter(Boolean).join(" · ")),
      now.verdict && h("p", {class: "verdict " + now.verdict.level}, h("span", {}, now.verdict.text)),
      h("div", {class: "row progress"}, h("b", {role: "status", id: "round"}, "round " + now.round + " of " + now.rounds),
        bar(share, "f1"), left && h("span", {class: "soft"}, left)),
      now.again && h("p", {class: "soft"}, now.state === "under way" ? "If it stops, resume it by: " : "Resume it by: ", h("code", {}, now.again)),
    ];
  }

  function parties(now) {
    return h("ul", {class: "cards"}, now.parties.map((one) => h("li", {class: "card", "data-party": one.name, "data-state": one.state},
      h("h3", {}, one.name, " ", h("span", {class: "pill " + states[one.state]}, one.state)),
      h("p", {class: "soft"}, [one.phase, one.seconds === null ? "" : one.seconds.toFixed(1) + " s for the last step", one.why]
        .filter(Boolean).join(" · ") || " "),
      one.took_part && h("p", {class: one.missed_many ? "weak" : "soft"}, one.took_part),
      h("p", {}, "↑ " + size(one.up), " ", h("span", {class: "soft"}, "sent"), "   ↓ " + size(one.down), " ", h("span", {class: "soft"}, "received")),
      one.budgets.map((b) => h("div", {}, bar(b.spent / b.limit, b.spent >= b.limit ? "bad" : "f1"),
        h("p", {class: "soft"}, "budget for " + b.of + ": " + b.spent.toFixed(2) + " of " + b.limit + ", delta " + b.delta))))));
  }

  function ticks(low, high) {
    const rough = (high - low) / 4, ten = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = ten * [1, 2, 5, 10].find((n) => ten * n >= rough), found = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) found.push(v);
    return found;
  }

  function scores(now) {
    const lines = Object.entries(now.own), dashed = Object.entries(now.levels);
    const known = now.scores.concat(...lines.map((one) => one[1]));
    if (!known.length) return h("p", {class: "soft"}, "No round has been scored yet.");
    const seen = Math.max(...known.map((p) => p[0])), first = Math.min(...known.map((p) => p[0]));
    const last = Math.max(seen, Math.min(now.rounds, Math.max(10, 2 * seen)));  // of many rounds, only the next ones
    const ys = known.map((p) => p[1]).concat(dashed.map((d) => d[1]));
    const room = (Math.max(...ys) - Math.min(...ys)) * .1 || Math.max(...ys) * .05 || 1;
    const low = Math.min(...ys) - room, high = Math.max(...ys) + room;
    const x = (r) => 42 + 346 * (last === first ? .5 : (r - first) / (last - first)), y = (v) => 8 + 152 * (high - v) / (high - low);
    const path = (points) => points.map((p) => x(p[0]).toFixed(1) + "," + y(p[1]).toFixed(1)).join(" ");
    const newest = now.scores[now.scores.length - 1];
    return h("figure", {}, chart("Perplexity of held-out documents by round", 192,
      ticks(low, high).map((v) => [s("line", {x1: 42, x2: 388, y1: y(v), y2: y(v), class: "grid"}), label(37, y(v) + 4, String(+v.toPrecision(6)), "end")]),
      dashed.map(([name, v]) => [s("line", {x1: 42, x2: 388, y1: y(v), y2: y(v), class: "l0 dashed"}), label(388, y(v) - 4, name, "end", "soft halo")]),
      now.gone.map(([r, party]) => s("g", {}, s("title", {}, party + " missed round " + r), s("rect", {x: x(r) - 3, y: 160, width: 6, height: 6, class: "bad"}))),
      lines.map(([name, points]) => {
        const end = points[points.length - 1], late = x(end[0]) > 300;
        return [s("polyline", {points: path(points), class: newest ? "l0 thin" : "l0"}),
          newest && label(x(end[0]) + (late ? 0 : 4), y(end[1]) + (late ? -4 : 4), name.length > 13 ? name.slice(0, 12) + "…" : name, late ? "end" : "start", "soft halo")];
      }),
      s("polyline", {points: path(now.scores), class: "l1"}),
      now.scores.slice(-40).map((p) => s("circle", {cx: x(p[0]), cy: y(p[1]), r: 3, class: "f1"})),
      label(42, 178, String(first), "middle"), label(388, 178, String(last), "end"), label(215, 188, "round", "middle")),
    h("figcaption", {}, newest ? (now.parties.some((one) => one.took_part) ? "The parties of each round: " : "All parties together: ") + newest[1].toFixed(1) + " after round " + newest[0] + ". Lower is better." : "Lower is better.",
      lines.length ? (newest ? " Thin: on" : " On") + " the held-out documents of " + lines.map((one) => one[0]).join(", ") + "." : "",
      now.gone.length ? " A mark below: a party missed the round." : ""));
  }

  function topics(now) {
    if (!now.topics.length) return h("p", {class: "soft"}, "There are no topics yet.");
    return h("ol", {class: "forming"}, now.topics.map((one) => h("li", {},
      h("span", {class: "soft"}, one.number + (one.share === null ? "" : " · " + (100 * one.share).toFixed(1) + " %")),
      bar(one.share === null ? 0 : one.share / Math.max(...now.topics.map((t) => t.share || 0), 1e-9), "f1"),
      h("span", {}, one.words.map(([word, , fresh], i) => [i ? " " : null, fresh ? h("mark", {title: "new since the last round"}, word) : word])))));
  }

  function releases(now) {
    const all = now.releases;
    if (!all.length) return h("p", {class: "soft"}, "Nothing has left yet.");
    const names = [...new Set(now.parties.map((p) => p.name).concat(all.map((r) => r.party)))].filter((n) => all.some((r) => r.party === n));
    const shown = names.slice(0, 12), t0 = all[0].at, t1 = all[all.length - 1].at, wide = t1 - t0 || 1;
    const most = Math.max(...all.map((r) => r.bytes), 1), height = 26 * shown.length + 22;
    const total = {};
    for (const r of all) total[r.level] = (total[r.level] || 0) + r.bytes;
    return h("figure", {}, chart("What left each party, by time", height,
      shown.map((name, i) => [s("line", {x1: 96, x2: 392, y1: 26 * i + 14, y2: 26 * i + 14, class: "grid"}),
        label(0, 26 * i + 18, name.length > 13 ? name.slice(0, 12) + "…" : name)]),
      all.filter((r) => shown.includes(r.party)).map((r) => s("circle", {cx: 100 + 284 * (r.at - t0) / wide, cy: 26 * shown.indexOf(r.party) + 14,
        r: 2 + 9 * Math.sqrt(r.bytes / most), class: levels[r.level][0] + " faint"}, s("title", {}, r.what + ", " + size(r.bytes) + ", " + levels[r.level][1]))),
      label(96, height - 4, "start"), label(392, height - 4, "+" + span(wide), "end")),
    h("figcaption", {}, Object.entries(total).map(([level, n], i) => (i ? ", " : "") + size(n) + " " + levels[level][1]).join(""),
      ", " + now.sizes + ". A dot is a release, as large as its bytes.", names.length > 12 ? " The first 12 parties are shown." : ""));
  }

  const parts = {head, parties, scores, topics, releases}, drawn = {};
  function draw(now) {
    if (!now.title) return;
    for (const [name, make] of Object.entries(parts)) {
      const of = {head: [now.title, now.state, now.round, now.rounds, now.left, now.doing, now.text, now.again, now.run, now.verdict],
        parties: now.parties, scores: [now.scores, now.own, now.levels, now.gone, now.rounds, now.parties.some((one) => one.took_part)], topics: now.topics,
        releases: [now.releases, now.parties.length]}[name];
      const key = JSON.stringify(of);
      if (drawn[name] === key) continue;
      drawn[name] = key;
      at(name).replaceChildren(...[make(now)].flat(9).filter((one) => one));
    }
    document.title = now.title + ": " + now.state + ", round " + now.round;
  }

  draw(JSON.parse(at("first").textContent));
  const stream = new EventSource("/events");
  let last = null;
  stream.onmessage = (event) => {
    last = JSON.parse(event.data);
    draw(last);
    at("foot").dataset.at = String(Date.now());
    if (last.ended) {
      stream.close();
      at("foot").textContent = "The run has ended; the page shows its last state. Reload the page if the run was started again.";
    }
  };
  stream.onerror = () => { at("foot").textContent = "The connection is lost; the page shows the last state received."; };
})();
