// The page: what is shown first, and what is redrawn when something else is chosen.

let redrawCurves, showEmbedding, showWeights;

function showSummary() {
  const isStatic = r => data.runs[r].model.options.model.kind === "static", { beside } = state;
  const pair = beside !== null && isStatic(beside) && mapOf(state.run);
  const lead = !shownRuns().some(isInPage) ? "try.recorded" : pair ? "try.lead_pair" : beside !== null ? "try.lead_two" : "try.lead";
  $("summary").replaceChildren(...rich(lead));
  const models = data.runs.length === 1 ? "try.model_one" : data.same_data ? "try.models" : "try.models_of_data";
  $("eyebrow").textContent = t(models, { n: data.runs.length });
}

function showConfig() {
  $("config-name").textContent = run().name;
  $("config-text").textContent = run().config;
}

// The parts that depend on the text, the models and the checkpoint.
function showLive() {
  showSummary();
  showAnswers();
  showAttention();
  showWhy();
}

// Changes what is chosen and redraws what depends on it. A word of null becomes the one that the task asks about.
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
  if (state.word === null) {
    state.word = before.word;
    state.word = firstTarget();
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
  Object.assign(state, { map: map.key, layer: layerOf(map), head: headOf(map), word: chosenRow(map), key: Math.min(state.key, map.columns.length - 1) });
}

// The page opens on its main model, and beside it a static one, else the first.
function chooseFirst() {
  state.run = data.main;
  const isOther = (_, r) => r !== state.run, isStatic = other => other.model.options.model.kind === "static";
  const beside = [data.runs.findIndex((other, r) => isOther(other, r) && isStatic(other)), data.runs.findIndex(isOther)].find(r => r >= 0);
  state.beside = beside === undefined ? null : beside;
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

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = t(dark ? "theme.light" : "theme.dark");
  $("theme").setAttribute("aria-label", t(dark ? "theme.to_light" : "theme.to_dark"));
}

// Everything, in the chosen language.
function drawPage() {
  closeExplanation();
  fillTexts();
  setTheme(isDark());
  document.title = t("page.title", { name: data.name });
  $("made").textContent = t("page.made", { version: data.version });
  for (const section of ["try", "attention"]) showSection(section, data.runs.some((run, r) => run.sentences.length || isInPage(r)));
  showFacts();
  showResults();
  showProbes();
  showConfig();
  startAnswers();
  startAttention();
  startWhy();
  redrawCurves = startCurves();
  showEmbedding = startEmbedding();
  showWeights = startWeights();
  startTrain();
  timeControl();
  showLive();
  showEmbedding();
  showWeights();
}

function start() {
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const turn = dark => {
    setTheme(dark);
    redrawCurves();
    showLive();
    showEmbedding();
    showWeights();
    redrawLiveCurves.forEach(redraw => redraw());
  };
  $("theme").addEventListener("click", () => turn(!isDark()));
  prefers.addEventListener("change", event => turn(event.matches));
  for (const [code, table] of Object.entries(texts))
    $("language").append(make("option", { value: code, lang: code, selected: code === language }, table["language.name"]));
  $("language").addEventListener("change", () => {
    language = $("language").value;
    drawPage();
  });
  setTheme(prefers.matches);
  chooseFirst();
  drawPage();
  watchFollowers();
  $("main").removeAttribute("aria-busy");
  openLink();
  window.addEventListener("hashchange", openLink);
}

start();
