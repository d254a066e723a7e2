// Embeddings: the asked words as points, before and after the model has read their sentences, and the typed text's beside them.

const labelColour = i => colourOf(i + 6);  // other colours than the runs have
const labelsOf = points => [...new Set(points.map(point => point.label))].sort();

// The label of the points on one position: "banks: money 4, river 3".
const fewPositions = 6;
function usesAt(points) {
  const words = new Set(points.map(p => shownToken(p.tokens[p.index] || "")));
  const counts = labelsOf(points).map(label => `${label} ${count(points.filter(p => p.label === label).length)}`);
  return `${[...words].join(", ")}: ${counts.join(", ")}`;
}

// Where a vector lies in the view: its first two principal components.
function projected(view, vector) {
  const floats = text => new Float32Array(bytesOf(text).buffer), mean = floats(view.mean), directions = floats(view.directions);
  return [0, 1].map(axis => d3.sum(vector, (v, i) => (v - mean[i]) * (directions[axis * vector.length + i] || 0)));
}

// The view of a run, of a live one as it is now; null where there is none.
const embeddingOf = r => data.runs[r].live ? liveEmbedding(r) : data.runs[r].embedding;

function drawTyped(svg, at, [x, y], name, width, ink) {
  const right = x < width * 0.7;
  svg.append("path").datum(at).attr("class", "typed").attr("d", d3.symbol().type(d3.symbolDiamond).size(150)()).attr("transform", `translate(${x},${y})`)
    .attr("fill", "#e8871e").attr("stroke", ink.ink).attr("stroke-width", 1.5);
  svg.append("text").attr("x", x + (right ? 12 : -12)).attr("y", y + 4).attr("text-anchor", right ? "start" : "end").attr("font-weight", 700)
    .attr("fill", ink.ink).attr("stroke", ink.paper).attr("stroke-width", 4).attr("paint-order", "stroke").text(name);
}

function drawPoints(which) {
  return (svg, width) => {
    const ink = colours(), view = embeddingOf(state.run)[which], { points } = run(), labels = labelsOf(points);
    const height = Math.min(width, 460), pad = 26, now = view.points[state.stop];
    const typed = typedVectors(state.run), at = typed && (view.typed || projected(view, typed[which])), all = view.points.flat().concat(at ? [at] : []);
    const extent = axis => {
      const most = d3.max(all, point => Math.abs(point[axis])) || 1;
      return [-most, most];
    };
    const x = d3.scaleLinear(extent(0), [pad, width - pad]), y = d3.scaleLinear(extent(1), [height - pad - 14, pad]);
    const line = (x1, y1, x2, y2) => svg.append("line").attr("x1", x1).attr("y1", y1).attr("x2", x2).attr("y2", y2).attr("stroke", ink.line);
    line(pad, y(0), width - pad, y(0));
    line(x(0), pad, x(0), height - pad - 14);
    const fraction = i => view.share[i] ? ` (${percent(view.share[i])})` : "";
    svg.append("text").attr("x", width - pad).attr("y", height - 8).attr("text-anchor", "end").attr("fill", ink.soft).attr("font-size", 11)
      .text(t("embeddings.components", { first: fraction(0), second: fraction(1) }));
    svg.append("g").selectAll("circle").data(now).join("circle")
      .attr("cx", p => x(p[0])).attr("cy", p => y(p[1])).attr("r", 5).attr("fill-opacity", 0.75).attr("stroke", ink.paper).attr("stroke-width", 1)
      .attr("fill", (_, i) => labelColour(labels.indexOf(points[i].label)))
      .append("title").text((_, i) => `${points[i].label}: ${points[i].tokens.join(" ")}`);
    const positions = new Map();
    now.forEach((p, i) => memo(positions, p.map(v => v.toFixed(2)).join(" "), () => []).push(i));
    if (positions.size <= fewPositions && now.length > positions.size)
      for (const uses of positions.values()) {
        const [at] = uses.map(i => [x(now[i][0]), y(now[i][1])]);
        svg.append("text").attr("x", at[0]).attr("y", at[1] - 14).attr("fill", ink.ink)
          .attr("text-anchor", at[0] < width / 3 ? "start" : at[0] > width * 2 / 3 ? "end" : "middle")
          .text(positions.size > 1 ? usesAt(uses.map(i => points[i])) : t("embeddings.one_vector", { n: now.length }));
      }
    if (at) drawTyped(svg, at, [x(at[0]), y(at[1])], typed.name, width, ink);
    return { height, title: t(`embeddings.${which}`), file: `embeddings ${which} step ${run().stops[state.stop].step}`,
      description: t("embeddings.description", { n: now.length, positions: positions.size, labels: labels.join(", ") }) +
        (at ? ` ${t("embeddings.typed", { name: typed.name, at: at.map(v => fixed(v, 2)).join("; ") })}` : "") };
  };
}

function startEmbedding() {
  const pictures = ["before", "after"].map(which => figure($(which), drawPoints(which)));
  return () => {
    const view = embeddingOf(state.run);
    showSection("embeddings", view);
    if (!view) return;
    const { points } = run(), labels = labelsOf(points), words = [...new Set(points.map(p => p.tokens[p.index] || ""))];
    const what = words.length > 1 ? "words" : words[0] ? "word" : "means";
    $("embeddings-lead").replaceChildren(...rich(`embeddings.of_${what}`, { word: words[0], n: points.length, split: t(`split.${run().texts_from.replace(/ /g, "_")}`) }),
      ...rich("embeddings.lead"), run().stops.length > 1 ? t("embeddings.slider") : "");
    $("labels").replaceChildren(...(labels.length > 1 ? labels : []).map((label, i) =>
      make("span", {}, make("i", { class: "dot", style: `background:${labelColour(i)}` }), label)));
    pictures.forEach(redraw => redraw());
  };
}
