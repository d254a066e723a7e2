// Attention: the tokens of a text, the heat map of a head, the arithmetic of one weight, and a slider over the checkpoints.

const mostCells = 40;  // tokens up to which each cell is an element; beyond, a canvas draws them

// A map is what a stack's attention gives for a text: { key, title, rows, columns, layers, heads, weights(layer, head) },
// tokens that attend and tokens that they attend to, and [query * columns + key] of a head; `steps(layer, head)` has q, k and
// scores where the model is in the page, whose rows end where the mask begins.

// A sentence's weights as the program recorded them at the latest kept checkpoint that is not after the chosen one.
const decoded = new Map();
function storedMap(r) {
  const { attention: view, sentences } = data.runs[r], i = sentences.findIndex(s => s.text === state.text);
  if (!view || i < 0) return null;
  const { layers, heads, weights, bits } = view.sentences[i], { tokens } = sentences[i], size = tokens.length ** 2;
  let at = 0;
  view.stops.forEach((stop, j) => { if (stop <= stopOf(r)) at = j; });
  const key = `${r} ${i} ${at}`;
  if (!decoded.has(key)) decoded.set(key, sharesOf(weights[at], bits));
  const part = (layer, head) => decoded.get(key).subarray((layer * heads + head) * size, (layer * heads + head + 1) * size);
  return { key: "self", title: "Attention", rows: tokens, columns: tokens, layers, heads, weights: part };
}

// Of the chosen head, or the mean of all.
function headWeights(map) {
  if (state.head !== "mean") return map.weights(Math.min(state.layer, map.layers - 1), Math.min(state.head, map.heads - 1));
  const mean = new Float32Array(map.rows.length * map.columns.length);
  for (let head = 0; head < map.heads; ++head)
    map.weights(Math.min(state.layer, map.layers - 1), head).forEach((w, i) => { mean[i] += w / map.heads; });
  return mean;
}

const headName = () => `layer ${state.layer}, ${state.head === "mean" ? "mean of heads" : `head ${state.head}`}`;
const checkpointName = checkpoint => `Step ${count(checkpoint.step)}${checkpoint.note ? ` · ${checkpoint.note}` : ""}`;
const chosenRow = map => Math.min(state.word, map.rows.length - 1);
const rowOf = (map, weights) => weights.subarray(chosenRow(map) * map.columns.length, (chosenRow(map) + 1) * map.columns.length);

// The token that the chosen row attends to most.
const mostAttended = map => argmax(rowOf(map, headWeights(map)));

function drawCells(svg, weights, map, x0, y0, cell, ink) {
  const { rows, columns } = map, column = i => i % columns.length, row = i => Math.floor(i / columns.length);
  svg.append("g").attr("class", "cells").selectAll("rect").data([...weights]).join("rect")
    .attr("x", (_, i) => x0 + column(i) * cell).attr("y", (_, i) => y0 + row(i) * cell)
    .attr("width", cell - 1).attr("height", cell - 1).attr("rx", Math.min(3, cell / 8)).attr("fill", ink.shade)
    .append("title").text((w, i) => `${shownToken(rows[row(i)])} attends to ${shownToken(columns[column(i)])} with ${percent(w)}`);
  if (cell < 30) return;
  svg.append("g").attr("text-anchor", "middle").attr("font-size", Math.min(13, cell / 2.9)).attr("pointer-events", "none")
    .selectAll("text").data([...weights]).join("text")
    .attr("x", (_, i) => x0 + (column(i) + 0.5) * cell).attr("y", (_, i) => y0 + (row(i) + 0.5) * cell).attr("dy", "0.35em")
    .attr("fill", w => inkOn(ink.shade(w))).text(w => w.toFixed(2).replace(/^0/, ""));
}

// One pixel a cell, as an image inside the figure. Small weights would vanish among hundreds of
// words, so the scale is relative to the largest.
function drawPixels(svg, weights, map, x0, y0, cell, most, ink) {
  const width = map.columns.length, height = map.rows.length;
  const canvas = make("canvas", { width, height }), context = canvas.getContext("2d"), image = context.createImageData(width, height);
  const table = d3.range(256).map(v => d3.rgb(ink.shade(v / 255)));
  for (let i = 0; i < weights.length; ++i) {
    const colour = table[Math.round(weights[i] / most * 255)];
    image.data.set([colour.r, colour.g, colour.b, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  svg.append("image").attr("x", x0).attr("y", y0).attr("width", width * cell).attr("height", height * cell).attr("preserveAspectRatio", "none")
    .attr("style", "image-rendering:pixelated").attr("href", canvas.toDataURL());
}

// The colours from 0 to `most`, and what rows and columns are.
function drawLegend(svg, x, y, width, most, ink) {
  const bar = Math.min(180, width / 3);
  svg.append("g").attr("shape-rendering", "crispEdges").selectAll("rect").data(d3.range(36)).join("rect").attr("x", i => x + i * bar / 36).attr("y", y)
    .attr("width", bar / 36 + 0.5).attr("height", 8).attr("fill", i => ink.shade(i / 35));
  const text = (at, what, anchor) => svg.append("text").attr("x", at).attr("y", y + 22).attr("text-anchor", anchor).attr("font-size", 11).attr("fill", ink.soft).text(what);
  text(x, "0", "start");
  text(x + bar * 0.3, (0.3 * most).toFixed(most < 0.1 ? 3 : 1), "middle");
  text(x + bar, most === 1 ? "1" : most.toFixed(2), "end");
  svg.append("text").attr("x", x + bar + 16).attr("y", y + 8).attr("font-size", 11).attr("fill", ink.soft).text("weight; row: attends");
  svg.append("text").attr("x", x + bar + 16).attr("y", y + 22).attr("font-size", 11).attr("fill", ink.soft).text("column: attended to");
}

// `mapOf` gives the map to draw.
const drawAttention = (mapOf, name) => (svg, width) => {
  const ink = colours(), map = mapOf(), { rows, columns } = map, weights = headWeights(map), word = chosenRow(map);
  const most = Math.max(rows.length, columns.length), pixels = most > mostCells, every = i => i % Math.ceil(most / 32) === 0;
  const longest = tokens => 14 + Math.min(d3.max(tokens, token => token.length), 14) * 8.2;
  const label = longest(rows), top = longest(columns), room = width - label - 24;
  const cell = pixels ? Math.min(room, 720) / most : Math.max(Math.min(room / columns.length, 56), 15);
  const size = { x: cell * columns.length, y: cell * rows.length }, left = label + Math.max(0, (room - size.x) / 2 - label / 3);
  const short = token => shownToken(token.length > 14 ? token.slice(0, 13) + "…" : token);
  const largest = pixels ? d3.max(weights) || 1 : 1;
  if (pixels) drawPixels(svg, weights, map, left, top, cell, largest, ink);
  else drawCells(svg, weights, map, left, top, cell, ink);
  const names = svg.append("g").attr("font-size", Math.max(Math.min(14, cell * 0.8), pixels ? 11 : 10));
  names.append("g").attr("text-anchor", "end").selectAll("text").data(d3.range(rows.length).filter(every)).join("text").attr("x", left - 8)
    .attr("y", i => top + (i + 0.5) * cell).attr("dy", "0.35em").attr("font-weight", i => i === word ? 700 : 400)
    .attr("fill", i => i === word ? ink.ink : ink.soft).text(i => short(rows[i]));
  names.append("g").selectAll("text").data(d3.range(columns.length).filter(every)).join("text")
    .attr("transform", i => `translate(${left + (i + 0.5) * cell},${top - 8}) rotate(-60)`).attr("dy", "0.35em").attr("fill", ink.soft)
    .text(i => short(columns[i]));
  svg.append("rect").attr("x", left - 1.5).attr("y", top + word * cell - 1.5).attr("width", size.x + 2).attr("height", Math.max(cell, 3) + 2)
    .attr("rx", 4).attr("fill", "none").attr("stroke", ink.ink).attr("stroke-width", 1.5).attr("pointer-events", "none");
  onClick(svg, (x, y) => {
    const row = Math.floor((y - top) / cell), column = Math.floor((x - left) / cell);
    if (row >= 0 && row < rows.length) choose({ word: row, key: column >= 0 && column < columns.length ? column : state.key });
  });
  drawLegend(svg, left, top + size.y + 14, Math.max(size.x, room), largest, ink);
  const step = run().stops[state.stop];
  return { height: top + size.y + 40, width: Math.max(width, left + Math.max(size.x, 290) + 24), file: `attention ${name()} ${headName()} step ${step.step}`,
    title: `${map.title}, ${headName()}, ${checkpointName(step).toLowerCase()}`, description: reading(map, weights) };
};

// "bank attends to money (63 %), grows (20 %)."
function reading(map, weights) {
  const row = rowOf(map, weights), order = d3.range(row.length).sort((a, b) => row[b] - row[a]).slice(0, 4);
  return `“${shownToken(map.rows[chosenRow(map)])}” attends to ${order.map(i => `${shownToken(map.columns[i])} (${percent(row[i])})`).join(", ")}.`;
}

// A token as a word of the box; `chosen` makes it a button.
function tokenElement(token, isUnknown, chosen) {
  const element = make(chosen ? "button" : "span", { type: chosen ? "button" : null, class: isUnknown && "unknown" }, shownToken(token));
  if (chosen) element.addEventListener("click", chosen);
  return element;
}

// The tokens of a box, shaded by how much the chosen row attends to them.
function shade(box, row) {
  const ink = colours(), most = row.length > mostCells ? d3.max(row) : 1;
  [...box.children].forEach((element, i) => {
    const colour = ink.shade(most ? row[i] / most : 0);
    element.style.background = colour;
    element.style.color = inkOn(colour);
    element.title = `${percent(row[i])}${element.className === "unknown" ? ", not in the vocabulary" : ""}`;
  });
}

// One weight step by step: q and k, their products, the score, scaled and with its bias, and the softmax of the row.
function drawArithmetic(svg, width) {
  const ink = colours(), map = mapOf(state.run), { q, k, scores, weights, scale } = map.steps(state.layer, state.head);
  const i = chosenRow(map), j = Math.min(state.key, map.columns.length - 1), products = q[i].map((v, d) => v * k[j][d]);
  const size = q[i].length, label = 84, cell = Math.max(Math.min((width - label - 8) / size, 46), 2), most = d3.max([...q[i], ...k[j], ...products], Math.abs) || 1;
  const strip = (y, name, values) => {
    svg.append("text").attr("x", label - 10).attr("y", y + 15).attr("text-anchor", "end").attr("font-size", 13).attr("fill", ink.ink).text(name);
    svg.append("g").selectAll("rect").data([...values]).join("rect").attr("x", (_, d) => label + d * cell).attr("y", y).attr("width", Math.max(cell - 1, 1.5))
      .attr("height", 22).attr("fill", v => ink.signed((v / most + 1) / 2)).append("title").text((v, d) => `element ${d}: ${v.toFixed(4)}`);
    if (cell < 34) return;
    svg.append("g").attr("text-anchor", "middle").attr("font-size", 11).attr("pointer-events", "none").selectAll("text").data([...values]).join("text")
      .attr("x", (_, d) => label + (d + 0.5) * cell).attr("y", y + 15).attr("fill", v => inkOn(ink.signed((v / most + 1) / 2))).text(v => v.toFixed(2));
  };
  const short = token => shownToken(token.length > 9 ? token.slice(0, 8) + "…" : token);
  strip(0, `q ${short(map.rows[i])}`, q[i]);
  strip(28, `k ${short(map.columns[j])}`, k[j]);
  strip(56, "q × k", products);
  const score = products.reduce((a, b) => a + b, 0), scaled = scores[i][j], bias = scaled - score * scale;
  const isHidden = n => n >= scores[i].length, weightOf = n => isHidden(n) ? 0 : weights[i][n], hidden = isHidden(j);
  const sum = d3.sum(scores[i], Math.exp);
  const parts = [`score q·k = ${score.toFixed(4)}`,
    hidden ? "a later token: masked, weight 0"
      : `scaled: ${score.toFixed(4)} × ${scale.toFixed(4)}${Math.abs(bias) > 1e-6 ? ` + bias ${bias.toFixed(4)}` : ""} = ${scaled.toFixed(4)}`,
    hidden ? "" : Number.isFinite(sum) && sum > 0 ? `softmax: e^${scaled.toFixed(4)} / sum over keys = ${Math.exp(scaled).toPrecision(4)} / ${sum.toPrecision(4)} = ${weights[i][j].toFixed(4)}`
      : `softmax: ${weights[i][j].toFixed(4)}`];
  const lines = parts.flatMap(text => width < 420 && text.length > 45 ? text.split(/ (?== )/) : [text]);
  lines.forEach((text, line) => svg.append("text").attr("x", 4).attr("y", 104 + 20 * line).attr("font-size", 13).attr("fill", ink.ink).text(text));
  const shown = d3.range(map.columns.length).slice(0, 40), top = 100 + 20 * lines.length, left = 110, bar = d3.scaleLinear([0, 1], [0, Math.max(width - left - 150, 40)]);
  const row = svg.append("g").selectAll("g").data(shown).join("g").attr("transform", n => `translate(0,${top + 20 * n})`);
  row.append("text").attr("x", left - 8).attr("y", 13).attr("text-anchor", "end").attr("font-size", 12).attr("font-weight", n => n === j ? 700 : 400)
    .attr("fill", n => n === j ? ink.ink : ink.soft).text(n => short(map.columns[n]));
  row.append("rect").attr("x", left).attr("y", 3).attr("width", n => Math.max(bar(weightOf(n)), 1)).attr("height", 13).attr("rx", 2).attr("fill", "#6366f1").attr("fill-opacity", n => n === j ? 1 : 0.35);
  row.append("text").attr("x", n => left + bar(weightOf(n)) + 8).attr("y", 13).attr("font-size", 12).attr("fill", ink.soft)
    .text(n => isHidden(n) ? "masked" : `${weights[i][n].toFixed(3)}  (scaled ${scores[i][n].toFixed(2)})`);
  return { height: top + 20 * shown.length + 6, title: `The weight of “${shownToken(map.columns[j])}” for “${shownToken(map.rows[i])}”, ${headName()}`,
    file: `arithmetic ${headName()}`, description: parts.filter(Boolean).join("; ") + "." };
}

// Playing shows one checkpoint after the other, up to the last one, a pause or a hand on the slider.
let timer = null;

function pause() {
  clearInterval(timer);
  timer = null;
  if ($("play")) $("play").textContent = "Play";
}

function play() {
  const last = run().stops.length - 1;
  $("play").textContent = "Pause";
  if (state.stop === last) choose({ stop: 0 });
  timer = setInterval(() => {
    choose({ stop: state.stop + 1 });
    if (state.stop === last) pause();
  }, 450);
}

function timeControl() {
  pause();
  const stops = run().stops;
  const range = make("input", { type: "range", id: "stop", min: 0, max: stops.length - 1, step: 1, value: state.stop, "aria-label": "Checkpoint" });
  range.addEventListener("pointerdown", pause);
  range.addEventListener("input", () => { pause(); choose({ stop: Number(range.value) }); });
  const button = make("button", { type: "button", class: "quiet", id: "play" }, "Play");
  button.addEventListener("click", () => timer === null ? play() : pause());
  $("time").replaceChildren(button, make("label", {}, range), make("output", { for: "stop", id: "stop-name" }));
  $("time").hidden = stops.length < 2;
}

// The slider and its name follow what is chosen, by whatever means.
function showTime() {
  const name = checkpointName(run().stops[state.stop]);
  $("stop").value = state.stop;
  $("stop").setAttribute("aria-valuetext", name);
  $("stop-name").textContent = name;
}
