// The page: its texts and tables, and what is redrawn when something else is chosen.

let redrawCurves, redrawMap, showEmbedding, showWeights;

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
  const head = make("tr", {}, make("th", { scope: "col" }, "Model"), ...[...keys.map(key => `Test ${metricName(key).replace(/^./, first => first.toLowerCase())}`), "Parameters", "Best step", "Seconds"]
    .map(text => make("th", { scope: "col" }, text)));
  const rows = data.runs.map((run, i) => {
    const stop = run.stops.find(stop => stop.note === "best");
    return make("tr", {},
      make("th", { scope: "row" }, make("i", { class: "dot", style: `background:${colourOf(i)}` }), run.name),
      ...keys.map(key => make("td", { class: data.runs.length > 1 && run.test && run.test[key] === best[key] && "best" },
        run.test && Number.isFinite(run.test[key]) ? run.test[key].toFixed(4) : "–")),
      make("td", {}, count(run.parameters)), make("td", {}, stop ? count(stop.step) : "–"), make("td", {}, run.seconds ? run.seconds.toFixed(1) : "–"));
  });
  if (!keys.length) $("results-lead").textContent = "There are no test data, and so no results on them.";
  $("results-table").append(make("caption", { class: "skip" }, keys.length ? "Results on the test data" : "Models"), make("thead", {}, head), make("tbody", {}, ...rows));
}

function showAttention() {
  const view = attention();
  $("attention-view").hidden = !view;
  $("attention-empty").hidden = Boolean(view);
  $("attention-empty").textContent = run().sentences.length
    ? "This model has no attention: every word keeps its own vector."
    : "No sentences to show: the run’s data is not where its config says. Name some with qkv report --sentence.";
  showTime();
  if (!view) return;
  showTokens();
  redrawMap();
}

// Changes what is chosen and redraws what depends on it.
function choose(change) {
  const before = { ...state };
  Object.assign(state, change);
  if (state.run !== before.run) {
    const step = data.runs[before.run].stops[before.stop].step;
    state.stop = Math.max(d3.bisector(stop => stop.step).right(run().stops, step) - 1, 0);
    state.sentence = Math.min(state.sentence, Math.max(run().sentences.length - 1, 0));
    timeControl();
    showWeights();
    $("config-text").textContent = run().config;
  }
  const view = attention();
  if (view) {
    state.layer = Math.min(state.layer, view.layers - 1);
    if (view.heads === 1) state.head = 0;
    else if (state.head !== "mean" && state.head >= view.heads) state.head = "mean";
    state.word = Math.min(state.word, sentence().tokens.length - 1);
  }
  if (state.run !== before.run || state.sentence !== before.sentence) attentionControls();
  showAttention();
  if (state.run !== before.run || state.stop !== before.stop) showEmbedding();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
}

function start() {
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  setTheme(prefers.matches ? "dark" : "light");
  const redrawAll = () => { redrawCurves(); showAttention(); showEmbedding(); showWeights(); };
  $("theme").addEventListener("click", () => { setTheme(isDark() ? "light" : "dark"); redrawAll(); });
  prefers.addEventListener("change", event => { setTheme(event.matches ? "dark" : "light"); redrawAll(); });

  state.run = Math.max(d3.scan(data.runs, (a, b) => ((b.test || {}).accuracy || 0) - ((a.test || {}).accuracy || 0)), 0);
  if (!run().attention) state.run = Math.max(data.runs.findIndex(run => run.attention), 0);
  const best = run().stops.findIndex(stop => stop.note === "best");
  state.stop = best >= 0 ? best : run().stops.length - 1;
  state.head = attention() && attention().heads > 1 ? "mean" : 0;
  if (run().sentences.length) state.word = Math.max(sentence().index, 0);

  if (data.runs.length > 1)
    $("model-controls").append(menu("run", "Model", data.runs.map((run, i) => [i, run.name]), state.run, i => choose({ run: i }), true));
  $("config-text").textContent = run().config;
  $("made").textContent = `Written by qkv ${data.version}. This page needs no network and sends nothing anywhere.`;
  showFacts();
  showResults();
  redrawCurves = startCurves();
  redrawMap = figure($("attention-map"), drawAttention);
  showEmbedding = startEmbedding();
  showWeights = startWeights();
  timeControl();
  attentionControls();
  showAttention();
  showEmbedding();
  showWeights();
}

start();
