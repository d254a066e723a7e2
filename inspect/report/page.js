// The page: its texts and tables, and what is redrawn when something else is chosen.

let redrawCurves, showEmbedding, showWeights;

function fact(name, value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, String(value)));
}

function showFacts() {
  const sizes = run().data, models = data.runs.length;
  const steps = d3.max(data.runs.flatMap(seedsOf).flatMap(seed => seed.metrics), event => event.step);
  $("summary").textContent = models > 1
    ? `${models} models, ${data.same_data ? "the same data" : "not all on the same data"}, and what each of them learned.`
    : steps ? "What the model learned, from its first step to its best one." : "What the model has learned.";
  const facts = [];
  if (sizes.train !== undefined) facts.push(["Training examples", count(sizes.train)], ["Valid and test", `${count(sizes.valid)} + ${count(sizes.test)}`]);
  facts.push(["Vocabulary", count(sizes.vocabulary)]);
  if (sizes.labels && sizes.labels.length <= 6) facts.push(["Labels", sizes.labels.join(", ")]);
  if (steps) facts.push(["Steps", count(steps)]);
  facts.push(models > 1 ? ["Models", models] : ["Parameters", count(run().parameters)]);
  $("facts").replaceChildren(...facts.map(([name, value]) => fact(name, value)));
}

// "0.9925", of several seeds "0.9925 ± 0.0050", of none "–".
function meanOf(values, digits) {
  const found = values.filter(Number.isFinite), deviation = d3.deviation(found);
  if (!found.length) return "–";
  return make("span", {}, d3.mean(found).toFixed(digits), deviation === undefined ? "" : make("span", { class: "spread" }, ` ± ${deviation.toFixed(digits)}`));
}
const testValues = (run, key) => seedsOf(run).map(({ test }) => test ? test[key] : undefined).filter(Number.isFinite);

function bestSteps(run) {
  const [least, most] = d3.extent(seedsOf(run).map(seed => seed.best_step).filter(step => step !== null));
  return least === undefined ? "–" : least === most ? count(least) : `${count(least)} – ${count(most)}`;
}

const runHeader = (run, i) => make("th", { scope: "row" }, make("i", { class: "dot", style: `background:${colourOf(i)}` }), run.name,
  run.others.length ? make("span", { class: "spread" }, ` ${seedsOf(run).length} seeds`) : "");

function showResults() {
  const keys = [...new Set(data.runs.flatMap(seedsOf).flatMap(({ test }) => test ? metricsOf([test]) : []))];
  const smaller = key => ["loss", "log_loss", "calibration_error", "perplexity", "bits_per_token"].includes(key), average = (run, key) => d3.mean(testValues(run, key));
  const best = Object.fromEntries(keys.map(key => [key, (smaller(key) ? d3.min : d3.max)(data.runs, run => average(run, key))]));
  const testName = key => `Test ${metricName(key).replace(/^./, first => first.toLowerCase())}`;
  const head = make("tr", {}, make("th", { scope: "col" }, "Model"), ...[...keys.map(testName), "Parameters", "Best step", "Seconds"]
    .map(text => make("th", { scope: "col" }, text)));
  const rows = data.runs.map((run, i) => make("tr", {}, runHeader(run, i),
    ...keys.map(key => make("td", { class: data.runs.length > 1 && data.same_data && average(run, key) === best[key] && "best", "data-name": testName(key) },
      meanOf(testValues(run, key), 4))),
    ...[["Parameters", count(run.parameters)], ["Best step", bestSteps(run)], ["Seconds", meanOf(seedsOf(run).map(seed => seed.seconds), 1)]]
      .map(([name, text]) => make("td", { "data-name": name }, text))));
  if (!keys.length) $("results-lead").textContent = "There are no test data, and so no results on them.";
  $("results-table").append(make("caption", { class: "skip" }, keys.length ? "Results on the test data" : "Models"), make("thead", {}, head), make("tbody", {}, ...rows));
}

// Whether something is so, in words; of several seeds, in how many.
function verdict(seeds, good, yes, no) {
  const right = seeds.filter(good).length, text = right ? yes : no;
  return make("span", { class: right === seeds.length ? "verdict pass" : "verdict fail" },
    seeds.length === 1 ? text : `${yes} in ${right} of ${seeds.length}`);
}

// The claims of the configs, and whether they hold and their interventions break them.
function showProbes() {
  const all = data.runs.flatMap((run, i) => run.probes.map((_, j) => ({ run, i, seeds: seedsOf(run).map(seed => seed.probes[j]) })));
  $("probes").hidden = !all.length;
  const shortened = text => make("span", { title: text }, text.length > 90 ? `${text.slice(0, 89)}…` : text);
  const rows = all.map(({ run, i, seeds }) => {
    const [{ error, name, expect, sentences, findings }] = seeds, model = runHeader(run, i);
    if (error) return make("tr", {}, model, make("td", { colspan: 3, class: "text" }, error));
    // What each seed found; measured values of one only.
    const found = (j, good, yes, no) => [...(seeds.length === 1 ? [shortened(findings[j].measured), " "] : []),
      verdict(seeds, seed => good(seed.findings[j].holds), yes, no)];
    return make("tr", {}, model,
      make("td", { class: "text", "data-name": "Claim" }, make("span", {}, make("b", {}, name), make("br"), make("code", { title: sentences.join("\n") }, expect))),
      make("td", { class: "text", "data-name": "Found" }, make("span", {}, ...found(0, holds => holds, "holds", "does not hold"))),
      make("td", { class: "text", "data-name": "After interventions" }, make("span", {}, findings.length > 1 ? "" : "–",
        ...findings.slice(1).map(({ after }, j) => make("span", { class: "after" }, `${after.replace("-", " ")}: `,
          make("span", { class: "soft" }, ...found(j + 1, holds => !holds, "broken", "still holds")))))),
      make("td", { "data-name": "Probe" }, verdict(seeds, seed => seed.passes, "pass", "FAIL")));
  });
  $("probes-table").replaceChildren(make("caption", { class: "skip" }, "Probes"), make("thead", {}, make("tr", {},
    ...["Model", "Claim", "Found", "After interventions", "Probe"].map(text => make("th", { scope: "col" }, text)))), make("tbody", {}, ...rows));
}

function showConfig() {
  $("config-name").textContent = run().name;
  $("config-text").textContent = run().config;
}

// Changes what is chosen and redraws what depends on it.
function choose(change) {
  const before = { ...state };
  Object.assign(state, change);
  if (state.run !== before.run) {
    state.stop = stopLike(state.run, data.runs[before.run].stops[before.stop]);
    if (state.beside === state.run) state.beside = before.run;
    if ($("beside")) $("beside").selectedIndex = state.beside === null ? 0 : state.beside + 1;
    if (!isInPage(state.run) && !storedMap(state.run)) state.text = run().sentences.length ? run().sentences[0].text : "";
    timeControl();
    showWeights();
    showConfig();
  }
  fit();
  if (state.text !== before.text && mapOf(state.run)) state.key = mostAttended(mapOf(state.run));
  showLive();
  if (["run", "stop", "text", "word", "changes"].some(key => state[key] !== before[key])) showEmbedding();
}

// Keeps layer, head, map and words within what the model has.
function fit() {
  const map = mapOf(state.run);
  if (!map) return;
  state.map = map.key;
  state.layer = Math.min(state.layer, map.layers - 1);
  if (map.heads === 1) state.head = 0;
  else if (state.head !== "mean" && state.head >= map.heads) state.head = "mean";
  state.word = Math.min(state.word, map.rows.length - 1);
  state.key = Math.min(state.key, map.columns.length - 1);
}

const scoreOf = run => ["accuracy", "exact_match", "loss"].map(key => (key === "loss" ? -1 : 1) * d3.mean(testValues(run, key))).find(Number.isFinite) ?? -Infinity;

// The page opens on the best model with attention, and beside it a static one.
function chooseFirst() {
  state.run = argmax(data.runs, scoreOf);
  const kindOf = run => run.model.options.model.kind;
  if (!run().attention) state.run = Math.max(data.runs.findIndex(run => run.attention), 0);
  const beside = data.runs.findIndex(other => kindOf(other) === "static" && kindOf(run()) !== "static");
  state.beside = beside < 0 ? null : beside;
  const best = run().stops.findIndex(stop => stop.note === "best");
  state.stop = best >= 0 ? best : run().stops.length - 1;
  const [first] = run().sentences;
  if (first) Object.assign(state, { text: first.text, word: Math.max(first.index, 0) });
  const [map] = mapsOf(state.run);
  if (!map) return;
  Object.assign(state, { map: map.key, ...busiestHead(state.run) });
  fit();
  state.key = mostAttended(map);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
}

function start() {
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  setTheme(prefers.matches ? "dark" : "light");
  const redrawAll = () => { redrawCurves(); showLive(); showEmbedding(); showWeights(); };
  $("theme").addEventListener("click", () => { setTheme(isDark() ? "light" : "dark"); redrawAll(); });
  prefers.addEventListener("change", event => { setTheme(event.matches ? "dark" : "light"); redrawAll(); });

  chooseFirst();
  $("made").textContent = `Written by qkv ${data.version}. This page needs no network and sends nothing anywhere.`;
  showFacts();
  showResults();
  showProbes();
  showConfig();
  redrawCurves = startCurves();
  startLive();
  showEmbedding = startEmbedding();
  showWeights = startWeights();
  timeControl();
  showLive();
  showEmbedding();
  showWeights();
}

start();
