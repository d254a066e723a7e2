// The arithmetic of one weight: q and k, their products, the score, scaled and with its bias, and the softmax of its row.

const isOfMap = { cross: path => path.endsWith("cross_attention"), decoder: path => /^decoder\..*\.attention$/.test(path), encoder: path => path.startsWith("encoder"),
                  self: path => path.endsWith(".attention") };
// The attention module of a map's chosen layer, and its chosen head, of `qkv explain`.
function stepsOf(map) {
  const module = readingOf(state.run).explain().attention.filter(({ path }) => isOfMap[map.key](path))[layerOf(map)];
  return { module, head: module.heads[headOf(map)] };
}

// A vector as a row of coloured cells: { name, values, y }, in units of `most`.
function drawStrip(svg, { name, values, y }, left, cell, most, ink) {
  const colour = v => ink.signed(v / most);
  svg.append("text").attr("x", left - 10).attr("y", y + 15).attr("text-anchor", "end").attr("font-size", 13).attr("fill", ink.ink).text(name);
  svg.append("g").selectAll("rect").data([...values]).join("rect").attr("x", (_, d) => left + d * cell).attr("y", y).attr("width", Math.max(cell - 1, 1.5))
    .attr("height", 22).attr("fill", colour).attr("stroke", ink.line).attr("stroke-width", 0.5).append("title").text((v, d) => t("arithmetic.element", { d, value: fixed(v, 4) }));
  if (cell < 34) return;
  svg.append("g").attr("text-anchor", "middle").attr("font-size", 11).attr("pointer-events", "none").selectAll("text").data([...values]).join("text")
    .attr("x", (_, d) => left + (d + 0.5) * cell).attr("y", y + 15).attr("fill", v => inkOn(colour(v))).text(v => fixed(v, 2));
}

// The steps from score to weight in words.
function arithmeticLines({ score, scale, scaled, sum, weight }) {
  const lines = [t("arithmetic.score", { score: fixed(score, 4) })];
  if (scaled === undefined) return [...lines, t("arithmetic.masked")];
  const bias = scaled - score * scale, [a, b, c, d, e] = [score, scale, bias, scaled, weight].map(value => fixed(value, 4));
  const values = { score: a, scale: b, bias: c, scaled: d, weight: e, power: significant(Math.exp(scaled)), sum: significant(sum) };
  lines.push(t(Math.abs(bias) > 1e-6 ? "arithmetic.scaled_bias" : "arithmetic.scaled", values));
  return [...lines, t(Number.isFinite(sum) && sum > 0 ? "arithmetic.softmax" : "arithmetic.softmax_value", values)];
}

function drawArithmetic(svg, width) {
  const ink = colours(), map = mapOf(state.run), { module: { scale, mask }, head: { q, k, scaled, weights } } = stepsOf(map);
  const i = chosenRow(map), j = Math.min(state.key, map.columns.length - 1), products = q[i].map((v, d) => v * k[j][d]), isHidden = n => !mask[i][n];
  const left = 84, cell = Math.max(Math.min((width - left - 8) / q[i].length, 46), 2), most = d3.max([...q[i], ...k[j], ...products], Math.abs) || 1;
  const name = token => shownToken(token.length > 9 ? token.slice(0, 8) + "…" : token);
  [{ name: `q ${name(map.rows[i])}`, values: q[i], y: 0 }, { name: `k ${name(map.columns[j])}`, values: k[j], y: 28 }, { name: "q × k", values: products, y: 56 }]
    .forEach(strip => drawStrip(svg, strip, left, cell, most, ink));
  const visible = d3.range(map.columns.length).filter(n => !isHidden(n)), sum = d3.sum(visible, n => Math.exp(scaled[i][n]));
  const parts = arithmeticLines({ score: products.reduce((a, b) => a + b, 0), scale, sum, ...(isHidden(j) ? {} : { scaled: scaled[i][j], weight: weights[i][j] }) });
  const lines = parts.flatMap(line => width < 420 && line.length > 45 ? line.split(/ (?== )/) : [line]);
  lines.forEach((line, n) => svg.append("text").attr("x", 4).attr("y", 104 + 20 * n).attr("font-size", 13).attr("fill", ink.ink).text(line));
  const shown = d3.range(map.columns.length).slice(0, mostCells), top = 100 + 20 * lines.length;
  drawRow(svg, shown.map(n => ({ name: name(map.columns[n]), isChosen: n === j, weight: isHidden(n) ? undefined : weights[i][n], scaled: scaled[i][n] })), top, width, ink);
  return { height: top + 20 * shown.length + 6, file: `arithmetic ${headName(map)}`, description: `${parts.join("; ")}.`,
    title: t("arithmetic.title", { column: shownToken(map.columns[j]), row: shownToken(map.rows[i]), head: headName(map) }) };
}

// The weights of a row as bars: { name, isChosen, weight, scaled }, without a weight where the key is masked.
function drawRow(svg, keys, top, width, ink) {
  const left = 110, bar = d3.scaleLinear([0, 1], [0, Math.max(width - left - 150, 40)]), length = ({ weight = 0 }) => bar(weight);
  const row = svg.append("g").selectAll("g").data(keys).join("g").attr("transform", (_, n) => `translate(0,${top + 20 * n})`);
  row.append("text").attr("x", left - 8).attr("y", 13).attr("text-anchor", "end").attr("font-size", 12).attr("font-weight", key => key.isChosen ? 700 : 400)
    .attr("fill", key => key.isChosen ? ink.ink : ink.soft).text(key => key.name);
  row.append("rect").attr("x", left).attr("y", 3).attr("width", key => Math.max(length(key), 1)).attr("height", 13).attr("rx", 2).attr("fill", "#6366f1")
    .attr("fill-opacity", key => key.isChosen ? 1 : 0.35);
  row.append("text").attr("x", key => left + length(key) + 8).attr("y", 13).attr("font-size", 12).attr("fill", ink.soft)
    .text(({ weight, scaled }) => weight === undefined ? t("arithmetic.masked_key") : t("arithmetic.key", { weight: fixed(weight, 3), scaled: fixed(scaled, 2) }));
}

let redrawArithmetic;

function showArithmetic() {
  const map = mapOf(state.run), isComputed = map && map.stop === undefined, possible = Boolean(isComputed && headOf(map) !== "mean");
  $("arithmetic").hidden = !possible;
  $("arithmetic-note").hidden = !map || possible;
  $("arithmetic-note").textContent = t(isComputed ? "arithmetic.no_mean" : "arithmetic.no_weights");
  if (!possible) return;
  const tokens = map.columns.map((token, i) => [i, `${i}: ${shownToken(token)}`]);
  remake("key", [tokens, language], () => $("key-controls").replaceChildren(menu("key", t("arithmetic.attended"), tokens, state.key, key => choose({ key }))));
  $("key").selectedIndex = state.key;
  redrawArithmetic();
}
