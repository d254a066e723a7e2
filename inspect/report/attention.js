// Attention: the heat map of a head, its tokens, and a slider over the checkpoints.

const mostCells = 40;  // tokens up to which each cell is an element; beyond, a canvas draws them

function drawCells(svg, weights, map, x0, y0, cell, ink) {
  const { rows, columns } = map, column = i => i % columns.length, row = i => Math.floor(i / columns.length);
  svg.append("g").attr("class", "cells").selectAll("rect").data([...weights]).join("rect")
    .attr("x", (_, i) => x0 + column(i) * cell).attr("y", (_, i) => y0 + row(i) * cell)
    .attr("width", cell - 1).attr("height", cell - 1).attr("rx", Math.min(3, cell / 8)).attr("fill", ink.shade)
    .attr("stroke", ink.line).attr("stroke-width", 0.5)
    .append("title").text((w, i) => t("map.cell", { row: shownToken(rows[row(i)]), column: shownToken(columns[column(i)]), weight: percent(w) }));
  if (cell < 30) return;
  svg.append("g").attr("text-anchor", "middle").attr("font-size", Math.min(13, cell / 2.9)).attr("pointer-events", "none")
    .selectAll("text").data([...weights]).join("text")
    .attr("x", (_, i) => x0 + (column(i) + 0.5) * cell).attr("y", (_, i) => y0 + (row(i) + 0.5) * cell).attr("dy", "0.35em")
    .attr("fill", w => inkOn(ink.shade(w))).text(cellText);
}

// The weight of the deepest colour. Small weights would vanish among hundreds of words, so there the scale is relative to the
// largest.
const isLarge = map => Math.max(map.rows.length, map.columns.length) > mostCells;
const largestOf = (map, weights) => isLarge(map) ? d3.max(weights) || 1 : 1;

// One pixel a cell.
function paintPixels(canvas, weights, most, ink) {
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  const table = d3.range(256).map(v => d3.rgb(ink.shade(v / 255)));
  for (let i = 0; i < weights.length; ++i) {
    const colour = table[Math.round(weights[i] / most * 255)];
    image.data.set([colour.r, colour.g, colour.b, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}
function drawPixels(svg, weights, map, x0, y0, cell, most, ink) {
  const width = map.columns.length, height = map.rows.length, canvas = make("canvas", { width, height });
  paintPixels(canvas, weights, most, ink);
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
  text(x + bar * 0.3, fixed(0.3 * most, most < 0.1 ? 3 : 1), "middle");
  text(x + bar, most === 1 ? "1" : fixed(most, 2), "end");
  svg.append("text").attr("x", x + bar + 16).attr("y", y + 8).attr("font-size", 11).attr("fill", ink.soft).text(t("map.legend_row"));
  svg.append("text").attr("x", x + bar + 16).attr("y", y + 22).attr("font-size", 11).attr("fill", ink.soft).text(t("map.legend_column"));
}

// The attention map of the run that `runOf` gives.
const drawAttention = runOf => (svg, width) => {
  const ink = colours(), r = runOf(), map = mapOf(r), { rows, columns } = map, weights = headWeights(map), word = chosenRow(map);
  const most = Math.max(rows.length, columns.length), pixels = isLarge(map), every = i => i % Math.ceil(most / 32) === 0;
  const longest = tokens => 14 + Math.min(d3.max(tokens, token => token.length), 14) * 8.2;
  const label = longest(rows), top = longest(columns), room = width - label - 24;
  const cell = pixels ? Math.min(room, 720) / most : Math.max(Math.min(room / columns.length, 56), 15);
  const size = { x: cell * columns.length, y: cell * rows.length }, left = label + Math.max(0, (room - size.x) / 2 - label / 3);
  const short = token => shownToken(token.length > 14 ? token.slice(0, 13) + "…" : token);
  const largest = largestOf(map, weights);
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
  const { name } = data.runs[r], stop = stopOfMap(r, map);
  return { height: top + size.y + 40, width: Math.max(width, left + Math.max(size.x, 290) + 24), file: `attention ${name} ${headName(map)} step ${stop.step}`,
    title: [name, mapTitle(map), headName(map), checkpointName(stop)].join(" · "), description: attendedWords(map, weights) };
};

// "“bank” attends to money (63%), grows (20%)."
function attendedWords(map, weights) {
  const row = rowOf(map, weights), order = d3.range(row.length).sort((a, b) => row[b] - row[a]).slice(0, 4);
  return t("map.reading", { word: shownToken(map.rows[chosenRow(map)]), words: order.map(i => `${shownToken(map.columns[i])} (${percent(row[i])})`).join(", ") });
}

// The tokens of a box, shaded by how much the chosen row attends to them.
function shade(box, row) {
  const ink = colours(), most = row.length > mostCells ? d3.max(row) : 1;
  [...box.children].forEach((element, i) => {
    const colour = ink.shade(most ? row[i] / most : 0);
    element.style.background = colour;
    element.style.color = inkOn(colour);
    element.title = percent(row[i]);
  });
}

// Playing shows one checkpoint after the other, up to the last one, a pause or a hand on the slider.
let timer = null;

function pause() {
  clearInterval(timer);
  timer = null;
  if ($("play")) $("play").textContent = t("time.play");
}

function play() {
  const last = run().stops.length - 1;
  $("play").textContent = t("time.pause");
  if (state.stop === last) choose({ stop: 0 });
  timer = setInterval(() => {
    choose({ stop: state.stop + 1 });
    if (state.stop === last) pause();
  }, 450);
}

function timeControl() {
  pause();
  const stops = run().stops;
  const range = make("input", { type: "range", id: "stop", min: 0, max: stops.length - 1, step: 1, value: state.stop, "aria-label": t("time.checkpoint") });
  range.addEventListener("pointerdown", pause);
  range.addEventListener("input", () => { pause(); choose({ stop: Number(range.value) }); });
  const button = make("button", { type: "button", class: "quiet", id: "play" }, t("time.play"));
  button.addEventListener("click", () => timer === null ? play() : pause());
  $("time").replaceChildren(button, make("label", {}, range), make("output", { for: "stop", id: "stop-name" }));
  for (const id of ["time", "time-lead"]) $(id).hidden = stops.length < 2;
}

// The slider and its name follow what is chosen, by whatever means.
function showTime() {
  const name = checkpointName(run().stops[state.stop]);
  $("stop").value = state.stop;
  $("stop").setAttribute("aria-valuetext", name);
  $("stop-name").textContent = name;
}
