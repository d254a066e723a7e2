// The page: its texts and tables, and what is redrawn when something else is chosen.

let redrawCurves, showEmbedding, showWeights;

function fact(name, value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, String(value)));
}

function showFacts() {
  const sizes = run().data, models = data.runs.length;
  const steps = d3.max(data.runs.flatMap(run => run.metrics), event => event.step);
  $("summary").textContent = models > 1
    ? `${models} models, the same data, and what each of them learned.`
    : "What the model learned, from its first step to its best one.";
  const facts = [];
  if (sizes.train !== undefined) facts.push(["Training examples", count(sizes.train)], ["Valid and test", `${count(sizes.valid)} + ${count(sizes.test)}`]);
  facts.push(["Vocabulary", count(sizes.vocabulary)]);
  if (sizes.labels && sizes.labels.length <= 6) facts.push(["Labels", sizes.labels.join(", ")]);
  if (steps) facts.push(["Steps", count(steps)]);
  facts.push(models > 1 ? ["Models", models] : ["Parameters", count(run().parameters)]);
  $("facts").replaceChildren(...facts.map(([name, value]) => fact(name, value)));
}

function showResults() {
  const keys = [...new Set(data.runs.flatMap(run => run.test ? metricsOf([run.test]) : []))];
  const smaller = key => ["loss", "perplexity", "bits_per_token"].includes(key);
  const best = Object.fromEntries(keys.map(key => [key, (smaller(key) ? d3.min : d3.max)(data.runs, run => run.test && run.test[key])]));
  const testName = key => `Test ${metricName(key).replace(/^./, first => first.toLowerCase())}`;
  const head = make("tr", {}, make("th", { scope: "col" }, "Model"), ...[...keys.map(testName), "Parameters", "Best step", "Seconds"]
    .map(text => make("th", { scope: "col" }, text)));
  const rows = data.runs.map((run, i) => {
    const stop = run.stops.find(stop => stop.note === "best");
    return make("tr", {},
      make("th", { scope: "row" }, make("i", { class: "dot", style: `background:${colourOf(i)}` }), run.name),
      ...keys.map(key => make("td", { class: data.runs.length > 1 && run.test && run.test[key] === best[key] && "best", "data-name": testName(key) },
        run.test && Number.isFinite(run.test[key]) ? run.test[key].toFixed(4) : "–")),
      ...[["Parameters", count(run.parameters)], ["Best step", stop ? count(stop.step) : "–"], ["Seconds", run.seconds ? run.seconds.toFixed(1) : "–"]]
        .map(([name, text]) => make("td", { "data-name": name }, text)));
  });
  if (!keys.length) $("results-lead").textContent = "There are no test data, and so no results on them.";
  $("results-table").append(make("caption", { class: "skip" }, keys.length ? "Results on the test data" : "Models"), make("thead", {}, head), make("tbody", {}, ...rows));
}

// The claims of the configs, and whether they hold and their interventions break them.
function showProbes() {
  const all = data.runs.flatMap((run, i) => run.probes.map(probe => ({ ...probe, run, i })));
  $("probes").hidden = !all.length;
  const shortened = text => make("span", { title: text }, text.length > 90 ? `${text.slice(0, 89)}…` : text);
  const verdict = (passes, text) => make("span", { class: passes ? "verdict pass" : "verdict fail" }, text);
  const rows = all.map(({ run, i, error, name, expect, sentences, passes, findings }) => {
    const model = make("th", { scope: "row" }, make("i", { class: "dot", style: `background:${colourOf(i)}` }), run.name);
    if (error) return make("tr", {}, model, make("td", { colspan: 3, class: "text" }, error));
    const [trained, ...broken] = findings;
    return make("tr", {}, model,
      make("td", { class: "text", "data-name": "Claim" }, make("span", {}, make("b", {}, name), make("br"), make("code", { title: sentences.join("\n") }, expect))),
      make("td", { class: "text", "data-name": "Found" }, make("span", {}, shortened(trained.measured), make("br"), verdict(trained.holds, trained.holds ? "holds" : "does not hold"))),
      make("td", { class: "text", "data-name": "After interventions" }, make("span", {}, broken.length ? "" : "–", ...broken.map(({ after, measured, holds }) =>
        make("span", { class: "after" }, `${after.replace("-", " ")}: `, make("span", { class: "soft" }, shortened(measured), " "), verdict(!holds, holds ? "still holds" : "broken"))))),
      make("td", { "data-name": "Probe" }, verdict(passes, passes ? "pass" : "FAIL")));
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
    if (checkpointOf(state.run) === undefined && !storedMap(state.run)) state.text = run().sentences.length ? run().sentences[0].text : "";
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

const scoreOf = ({ test }) => test ? [test.accuracy, test.exact_match, -test.loss].find(Number.isFinite) : -Infinity;

// The page opens on the best model with attention, and beside it a static one.
function chooseFirst() {
  state.run = d3.scan(data.runs, (a, b) => scoreOf(b) - scoreOf(a) || 0);
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
