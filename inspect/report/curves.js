// Training curves: a line a run, the valid data's solid, the training data's thin; of several seeds their mean, in a band of
// one standard deviation.

const hidden = new Set();
let metric = "loss";
const mostDots = 50;  // points of a line up to which each is a dot

const metricName = key => `metric.${key}` in texts[language] ? t(`metric.${key}`) : key.replace(/_/g, " ");
// The name as a term where it is explained.
const metricTerm = key => `term.${key}` in texts[language] ? term(key, metricName(key)) : metricName(key);
const notMetrics = ["step", "split", "seconds", "tokens_per_second", "learning_rate", "gradient_norm"];

function metricsOf(events) {
  const keys = new Set();
  for (const event of events)
    for (const [key, value] of Object.entries(event)) if (!notMetrics.includes(key) && typeof value === "number") keys.add(key);
  return [...keys];
}

// { i, split, name, points: [step, mean over seeds, standard deviation][] } of runs by their index.
function curveLines(runs, metric) {
  return runs.flatMap(i => ["train", "valid"].map(split => {
    const run = data.runs[i], events = seedsOf(run).flatMap(seed => seed.metrics).filter(e => e.split === split && Number.isFinite(e[metric]));
    const steps = [...new Set(events.map(event => event.step))], valuesAt = step => events.filter(event => event.step === step).map(event => event[metric]);
    const points = steps.map(step => [step, d3.mean(valuesAt(step)), d3.deviation(valuesAt(step)) || 0]);
    return { i, split, name: run.name, points: points.sort((a, b) => a[0] - b[0]) };
  })).filter(line => line.points.length);
}

function drawCurves(svg, width, runs, metric) {
  const ink = colours(), height = width < 500 ? 260 : 360, margin = { top: 16, right: 24, bottom: 44, left: 56 };
  const lines = curveLines(runs, metric), points = lines.flatMap(line => line.points);
  const x = d3.scaleLinear([0, d3.max(points, p => p[0]) || 1], [margin.left, width - margin.right]);
  const shares = metric === "accuracy" || metric === "macro_f1";
  const y = d3.scaleLinear(shares ? [Math.min(0.5, d3.min(points, p => p[1]) || 0), 1] : [0, d3.max(points, p => p[1]) || 1],
    [height - margin.bottom, margin.top]).nice().clamp(true);
  const axis = (g, scale) => {
    g.call(scale).attr("font-family", font).attr("font-size", 12);
    g.selectAll("text").attr("fill", ink.soft);
    g.selectAll(".domain").remove();
    return g;
  };
  axis(svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`),
    d3.axisBottom(x).ticks(width / 110).tickFormat(count).tickSize(0).tickPadding(10));
  axis(svg.append("g").attr("transform", `translate(${margin.left},0)`),
    d3.axisLeft(y).ticks(6).tickFormat(value => format(value, { maximumSignificantDigits: 6 })).tickSize(-(width - margin.left - margin.right)).tickPadding(8))
    .selectAll("line").attr("stroke", ink.line);
  svg.append("text").attr("x", width - margin.right).attr("y", height - 6).attr("text-anchor", "end").attr("fill", ink.soft).attr("font-size", 12).text(t("training.step"));
  svg.append("text").attr("transform", `translate(13,${(height - margin.bottom + margin.top) / 2}) rotate(-90)`).attr("text-anchor", "middle")
    .attr("fill", ink.soft).attr("font-size", 12).text(metricName(metric));
  const path = d3.line().x(p => x(p[0])).y(p => y(p[1]));
  const band = d3.area().x(p => x(p[0])).y0(p => y(p[1] - p[2])).y1(p => y(p[1] + p[2]));
  for (const line of lines) {
    const colour = colourOf(line.i), valid = line.split === "valid";
    if (valid && line.points.some(p => p[2] > 0))
      svg.append("path").attr("class", "band").attr("d", band(line.points)).attr("fill", colour).attr("fill-opacity", 0.16);
    svg.append("path").attr("d", path(line.points)).attr("fill", "none").attr("stroke", colour)
      .attr("stroke-width", valid ? 2.5 : 1.25).attr("stroke-opacity", valid ? 1 : 0.6).attr("stroke-linejoin", "round")
      .attr("stroke-dasharray", valid ? null : "4 3");
    svg.append("g").selectAll("circle").data(line.points).join("circle")
      .attr("cx", p => x(p[0])).attr("cy", p => y(p[1])).attr("r", valid && line.points.length < mostDots ? 3 : 0).attr("fill", colour)
      .append("title").text(p => t(`training.point_${line.split}`, { name: line.name, value: fixed(p[1], 4) + (p[2] ? ` ± ${fixed(p[2], 4)}` : ""), step: p[0] }));
  }
  const last = lines.filter(line => line.split === "valid").map(line => `${line.name}: ${fixed(line.points[line.points.length - 1][1], 3)}`);
  return { height, title: t("training.figure", { metric: capital(metricName(metric)) }), file: `training ${metric}`,
    description: last.length ? t("training.at_end", { values: last.join("; ") }) : t("training.on_train") };
}

function startCurves() {
  const all = [...new Set(data.runs.flatMap(run => metricsOf(run.metrics)))];
  showSection("training", all.length);  // an imported model was not trained here
  const validates = data.runs.some(run => run.metrics.some(event => event.split === "valid"));
  const seeds = d3.max(data.runs, run => seedsOf(run).length);
  $("training-lead").replaceChildren(...(validates ? rich("training.solid") : []), ...rich("training.dashed"), ...(seeds > 1 ? rich("training.seeds") : []));
  const redraw = figure($("curves"), (svg, width) => drawCurves(svg, width, d3.range(data.runs.length).filter(i => !hidden.has(i)), metric));
  const controls = $("training-controls");
  controls.replaceChildren();
  if (all.length > 1)
    controls.append(segments("metric", rich("training.measure"), all.map(key => [key, capital(metricName(key))]), metric, key => { metric = key; redraw(); }));
  if (data.runs.length > 1) {
    const checks = make("div", { class: "checks" });
    data.runs.forEach((run, i) => {
      const input = make("input", { type: "checkbox", checked: !hidden.has(i) });
      input.addEventListener("change", () => { input.checked ? hidden.delete(i) : hidden.add(i); redraw(); });
      checks.append(make("label", {}, input, make("span", {}, make("i", { class: "dot", style: `background:${colourOf(i)}` }), run.name)));
    });
    controls.append(make("fieldset", {}, make("legend", {}, t("training.runs")), checks));
  }
  redraw();
  return redraw;
}
