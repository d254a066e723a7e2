// Why: ablation, what each head and feed-forward block does to the answer about the typed text, by zero ablation as in
// `qkv ablate`; and interventions that break the model.

const settled = 150;  // ms without another change until it is computed

// The subject of an ablation: { key, name, index }, the answer about the chosen word or the first; null where nothing is
// answered or can be ablated.
function askedOf(r) {
  const reading = readingOf(r), chosen = chosenOf(predictionsOf(reading));
  if (!chosen || !reading.components.length) return null;
  return { key: `${reading.key} ${chosen.index}`, index: chosen.index, name: shownToken(chosen.output === undefined ? chosen.label : chosen.output) };
}
// { key, name, components }, these of `qkv ablate`.
const ablation = (r, { key, index, name }) => ({ key, name, components: readingOf(r).ablate(index).components });

function drawAblation(svg, width) {
  const ink = colours(), { name } = ablated, components = ablated.components.map(c => ({ ...c, ...componentOf(c.id), change: c.zero.loss_change }));
  const most = d3.max(components, c => Math.abs(c.change)) || 1, isLast = column => column === partName({ kind: "feed_forward" });
  const rows = [...new Set(components.map(layerName))], columns = [...new Set(components.map(partName))].sort((a, b) => isLast(a) - isLast(b));
  const left = 16 + d3.max(rows, row => row.length) * 8, top = 88, cell = Math.max(Math.min((width - left - 24) / columns.length, 64), 22), height = 34;
  const colour = c => ink.signed(c.change / most), x = c => left + columns.indexOf(partName(c)) * cell, y = c => top + rows.indexOf(layerName(c)) * height;
  svg.append("g").attr("class", "cells").selectAll("rect").data(components).join("rect").attr("x", x).attr("y", y).attr("width", cell - 2).attr("height", height - 2)
    .attr("rx", 3).attr("fill", colour).attr("stroke", ink.line).append("title").text(c => t("ablation.cell", { name: componentName(c), change: withSign(c.change, 4) }));
  if (cell >= 36)
    svg.append("g").attr("text-anchor", "middle").attr("font-size", 12).attr("pointer-events", "none").selectAll("text").data(components).join("text")
      .attr("x", c => x(c) + (cell - 2) / 2).attr("y", c => y(c) + height / 2 + 3).attr("fill", c => inkOn(colour(c))).text(c => fixed(c.change, most < 0.1 ? 3 : 2));
  svg.append("g").attr("text-anchor", "end").attr("fill", ink.soft).selectAll("text").data(rows).join("text").attr("x", left - 8)
    .attr("y", (_, i) => top + (i + 0.5) * height).attr("dy", "0.35em").text(row => row);
  svg.append("g").attr("fill", ink.soft).selectAll("text").data(columns).join("text")
    .attr("transform", (_, i) => `translate(${left + (i + 0.5) * cell},${top - 8}) rotate(-50)`).text(column => column);
  onClick(svg, (mx, my) => {
    const hit = components.find(c => mx >= x(c) && mx < x(c) + cell && my >= y(c) && my < y(c) + height);
    if (hit && hit.head !== undefined) choose({ map: hit.map, layer: hit.layer, head: hit.head });
  });
  const worst = components[argmax(components, c => c.change)];
  return { height: top + rows.length * height + 6, width: Math.max(width, left + columns.length * cell + 40), file: `ablation step ${run().stops[state.stop].step}`,
    title: t("ablation.title", { name: name.length > 40 ? name.slice(0, 39) + "…" : name }),
    description: t("ablation.description", { name: componentName(worst), change: withSign(worst.change, 4) }) };
}

let redrawAblation, waiting = null, ablated = null;

// Computed when the reader pauses, since it takes a forward pass for each component.
function showAblation() {
  clearTimeout(waiting);
  const asked = askedOf(state.run), r = state.run;
  $("ablation").hidden = !asked || !ablated;
  if (!asked) return;
  if (ablated && ablated.key === asked.key && ablated.run === r) {
    redrawAblation();
    return;
  }
  waiting = setTimeout(() => {
    ablated = { run: r, ...ablation(r, asked) };
    $("ablation").hidden = false;
    redrawAblation();
  }, settled);
}

// The switches of the interventions, those that change something in one of the models.
function breakControls() {
  const models = shownRuns().filter(isInPage).map(r => data.runs[r].model);
  const some = has => models.some(({ options, parameters }) => has(options.model, parameters.map(p => p.path)));
  const isFree = ({ attention, kind }) => attention === "parameter-free" && (kind.endsWith("coder") || kind === "bert");
  const attends = some((model, paths) => isFree(model) || paths.some(path => path.endsWith(".w_v.weight")));
  const change = (key, value) => choose({ changes: { ...state.changes, [key]: value } });
  const check = (key, applies) => {
    const input = make("input", { type: "checkbox", id: `break-${key}`, checked: state.changes[key] });
    input.addEventListener("change", () => change(key, input.checked));
    return applies && make("label", {}, input, make("span", {}, t(`break.${key}`)));
  };
  const reading = readingOf(state.run), components = isRead(reading) ? reading.components : [];
  const checks = [check("uniform", attends), check("shuffled", some((_, paths) => paths.some(path => path.endsWith(".w_q.weight")))),
                  check("without_positions", attends && some(model => model.position !== "none"))].filter(Boolean);
  $("break").hidden = !checks.length;
  const parts = [["", t("break.none")], ...components.map(id => [id, componentName(componentOf(id))])];
  $("break-controls").replaceChildren(make("fieldset", {}, make("legend", {}, t("break.switches")), make("div", { class: "checks switches" }, ...checks)),
    ...(components.length ? [menu("off", t("break.off"), parts, state.changes.off, off => change("off", off))] : []));
}

// "river 99.7%"
function shortAnswer(reading) {
  const prediction = chosenOf(predictionsOf(reading));
  if (!prediction) return "–";
  if (prediction.output !== undefined) return prediction.output || t("answer.nothing");
  return `${shownToken(prediction.label)} ${sure(prediction.probability, prediction.probabilities)}`;
}
// "learned, 4 heads: river 99.7% → money 60%"
function brokenAnswer(r) {
  const change = make("span", {}, shortAnswer(readingOf(r, unchanged)), " → ", make("b", {}, shortAnswer(readingOf(r))));
  return make("li", {}, make("span", { class: "soft" }, data.runs[r].name), change);
}
function showBreak() {
  const maps = mapsOf(state.run);
  remake("break", [state.run, state.beside, maps.map(m => [m.key, m.layers, m.heads]), language], breakControls);
  $("broken").replaceChildren(...(isBroken() ? shownRuns().filter(isInPage).map(brokenAnswer) : []));
}

function showWhy() {
  showArithmetic();
  showAblation();
  showBreak();
  showSection("why", ["arithmetic", "arithmetic-note", "ablation", "break"].some(id => !$(id).hidden));
}
function startWhy() {
  redrawAblation = figure($("ablation-figure"), drawAblation);
}
