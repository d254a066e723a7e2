// Weights: every matrix as a heat map, before and after training, and their difference.

const weightState = { path: null, kind: "trained" };

function valuesOf(view, kind) {
  const read = (text, largest) => Float32Array.from(new Int8Array(bytesOf(text).buffer), v => v / 127 * largest);
  const after = read(view.values, view.largest);
  if (kind === "trained" || kind === "checkpoint") return after;
  const before = read(view.before, view.largest_before);
  return kind === "untrained" ? before : after.map((v, i) => v - before[i]);
}

// The meaning of a matrix's rows and columns, and the fractions of an axis at which heads begin: { rows, columns, along, heads }.
function meaningOf(path) {
  const { heads, kv_heads } = run().model.options.model, projection = (path.match(/\.(w_[qkvo])\.weight$/) || [])[1];
  if (path === "embedding.weight") return { rows: "tokens", columns: "dimensions" };
  if (path.endsWith("positions.weight")) return path === "positions.weight" ? { rows: "positions", columns: "dimensions" } : { rows: "distances", columns: "heads" };
  const meaning = { rows: path === "head.weight" ? "choices" : "outputs", columns: "inputs" };
  if (!projection) return meaning;
  const parts = (projection === "w_k" || projection === "w_v") && kv_heads && heads > 1 ? kv_heads : heads;
  return { ...meaning, along: projection === "w_o" ? "columns" : "rows", heads: parts };
}

// A model that was not trained here has the weights of its checkpoint alone.
const kindOf = view => view.before ? weightState.kind : "checkpoint";
const weightView = () => run().weights.find(view => view.path === weightState.path) || run().weights[0];

function drawWeights(svg, width) {
  const ink = colours(), view = weightView(), values = valuesOf(view, kindOf(view)), { rows, columns } = view;
  const most = d3.max(values, Math.abs) || 1, cell = Math.max(Math.min((width - 40) / columns, 560 / rows, 26), 1.5);
  const left = Math.max(22, (width - cell * columns) / 2), above = 20, meaning = meaningOf(view.path);
  const colour = v => ink.signed(v / most);
  svg.append("g").attr("shape-rendering", "crispEdges").selectAll("rect").data(values).join("rect")
    .attr("x", (_, i) => left + (i % columns) * cell).attr("y", (_, i) => above + Math.floor(i / columns) * cell)
    .attr("width", cell).attr("height", cell).attr("fill", colour);
  svg.append("text").attr("x", left).attr("y", 12).attr("font-size", 12).attr("fill", ink.soft).text(`${t(`axis.${meaning.columns}`)} →`);
  svg.append("text").attr("transform", `translate(${left - 8},${above}) rotate(-90)`).attr("text-anchor", "end").attr("font-size", 12).attr("fill", ink.soft).text(`← ${t(`axis.${meaning.rows}`)}`);
  for (let head = 1; head < (meaning.heads || 1); ++head) {
    const at = head / meaning.heads, x = left + at * columns * cell, y = above + at * rows * cell, down = meaning.along === "columns";
    svg.append("line").attr("class", "boundary").attr("x1", down ? x : left).attr("x2", down ? x : left + columns * cell).attr("y1", down ? above : y)
      .attr("y2", down ? above + rows * cell : y).attr("stroke", ink.ink).attr("stroke-width", 1.5);
  }
  const top = above + rows * cell + 16, bar = Math.min(220, width - 100), start = (width - bar) / 2;
  svg.append("g").selectAll("rect").data(d3.range(48)).join("rect").attr("x", i => start + i * bar / 48).attr("y", top)
    .attr("width", bar / 48 + 0.5).attr("height", 8).attr("fill", i => ink.signed(i / 23.5 - 1));
  for (const [x, value, anchor] of [[start - 8, -most, "end"], [start + bar + 8, most, "start"]])
    svg.append("text").attr("x", x).attr("y", top + 8).attr("text-anchor", anchor).attr("font-size", 12).attr("fill", ink.soft).text(fixed(value, 3));
  const shrunk = rows < view.shape[0] || columns < view.shape[1], kind = kindOf(view);
  const title = [`${view.path}, ${view.shape.join(" × ")}`, shrunk && t("weights.averages"), meaning.heads > 1 && t("weights.lines", { n: meaning.heads })]
    .filter(Boolean).join("; ");
  return { height: top + 20, title, file: `weights ${view.path} ${kind}`,
    description: t("weights.description", { kind: t(`weights.${kind}`), least: fixed(d3.min(values), 3), most: fixed(d3.max(values), 3) }) };
}

function startWeights() {
  const redraw = figure($("weights-map"), drawWeights);
  return () => {
    showSection("weights", run().weights.length);
    if (!run().weights.length) return;
    const paths = run().weights.map(view => view.path);
    if (!paths.includes(weightState.path)) weightState.path = paths.find(path => path.endsWith("w_q.weight")) || paths[0];
    const kinds = ["trained", "untrained", "difference"].map(kind => [kind, capital(t(`weights.${kind}`))]);
    $("weights-controls").replaceChildren(
      menu("parameter", t("weights.parameter"), paths.map(path => [path, path]), weightState.path, path => { weightState.path = path; redraw(); }, true),
      ...(run().weights.some(view => view.before) ? [
        segments("kind", rich("weights.show"), kinds, weightState.kind, kind => { weightState.kind = kind; redraw(); })] : []));
    redraw();
  };
}
