// A model that learns in the page, as one more run: it has a single checkpoint, its present step, and the data of the run that it
// was started from.

// Values of [model] and [task] by their names, as the "options" of a run.
function optionTables(toml) {
  const tables = { model: {}, task: {} };
  for (const [key, option] of Object.entries(optionsIn(toml))) {
    const [table, name] = key.split(".");
    if (table in tables && name) tables[table][name] = optionValue(option);
  }
  return tables;
}

// A run from the facts of the call `train` and the first state.
function liveRun(base, name, facts, { config, vocabulary }) {
  return { name, live: true, folder: "", config, parameters: facts.parameters, data: { ...facts.examples, vocabulary: facts.tokens, labels: facts.labels },
           sentences: base.sentences, points: base.points, texts_from: base.texts_from, stops: [{ step: 0, note: "" }], attention: null, embedding: null,
           weights: [], metrics: [], others: [], probes: [], best_step: null,
           model: { ...base.model, options: optionTables(config), vocabulary, weights: {} } };
}

// Takes a state of the worker; its parameters are loaded when something is asked of the model.
function takeState(run, { step, parameters }, { curve, evaluations }) {
  run.metrics = [...curve.points.map(([step, loss]) => ({ step, split: "train", loss })), ...evaluations];
  run.stops = [{ step, note: "" }];
  run.model.weights = { 0: parameters };
}

// Checks the claims of a live run's config at its present step.
function checkProbes(r) {
  const run = data.runs[r], key = `${run.stops[0].step} ${JSON.stringify(state.changes)}`;
  if (run.checked === key || !/^\s*\[\[probe\]\]/m.test(run.config)) return;
  run.checked = key;
  run.probes = new Engine(run, 0, state.changes).ask("probe").probes;
}

// The points of a live run and the typed text's among them, in their principal components at its present step; null where the
// engine cannot read them.
const liveViews = new Map();
function liveEmbedding(r) {
  const { points, stops: [{ step }] } = data.runs[r], reading = readingOf(r);
  if (!points.length || !isRead(reading)) return null;
  const key = `${step} ${reading.key} ${state.word}`, before = liveViews.get(r);
  if (before && before.key === key) return before.view;
  const whole = points.every(point => point.index < 0), typed = { text: state.text, index: whole ? -1 : wordOf(reading) };
  try {
    const view = reading.engine.ask("map", { points: [...points.map(({ text, index }) => ({ text, index })), typed] });
    for (const which of ["before", "after"]) view[which] = viewOf(view[which], before && before.view && before.view[which]);
    liveViews.set(r, { key, view });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    liveViews.set(r, { key, view: null });
  }
  return liveViews.get(r).view;
}
// A component has no sign of its own: it keeps that of the last view, so that points move instead of jumping.
function viewOf({ share, points }, before) {
  const old = before && before.all.length === points.length ? before.all : points;
  const signs = [0, 1].map(axis => d3.sum(points, (point, i) => point[axis] * old[i][axis]) < 0 ? -1 : 1);
  const all = points.map(point => point.map((v, axis) => v * signs[axis]));
  return { share, all, points: [all.slice(0, -1)], typed: all.at(-1) };
}
