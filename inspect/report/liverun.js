// A model that learns in the page, as one more run: it has a single checkpoint, its present step, and the data of the run that it
// was started from.

const mostPoints = 200;  // of a curve

// A curve of means over ever longer windows, so that it keeps its size.
class Means {
  constructor() { Object.assign(this, { window: 1, points: [], sum: 0, steps: 0 }); }
  add(step, value) {
    this.sum += value;
    if (++this.steps < this.window) return;
    this.points.push([step, this.sum / this.steps]);
    Object.assign(this, { sum: 0, steps: 0 });
    if (this.points.length < mostPoints) return;
    this.points = d3.pairs(this.points).filter((_, i) => i % 2 === 0).map(([a, b]) => [b[0], (a[1] + b[1]) / 2]);
    this.window *= 2;
  }
}

// Values of [model] and [task] by their names, as the "options" of a run.
function optionTables(toml) {
  const tables = { model: {}, task: {} };
  for (const [key, option] of Object.entries(optionsIn(toml))) {
    const [table, name] = key.split(".");
    if (table in tables && name) tables[table][name] = optionValue(option);
  }
  return tables;
}

function liveRun(base, name, facts) {
  return { name, live: true, folder: "", config: "", parameters: facts.parameters, data: { ...facts.examples, vocabulary: facts.tokens, labels: facts.labels },
           sentences: base.sentences, points: base.points, texts_from: base.texts_from, stops: [{ step: 0, note: "" }], attention: null, embedding: null,
           weights: [], metrics: [], others: [], probes: [], best_step: null, curve: new Means(), evaluations: [],
           model: { ...base.model, weights: {} } };
}

// Takes a state of the worker; its parameters are loaded when something is asked of the model.
function takeState(run, state) {
  for (const [step, loss] of state.losses) run.curve.add(step, loss);
  run.evaluations.push(...state.evaluations);
  if (run.evaluations.length > mostPoints) run.evaluations = run.evaluations.filter((_, i) => i % 2 === 1);
  run.metrics = [...run.curve.points.map(([step, loss]) => ({ step, split: "train", loss })), ...run.evaluations];
  Object.assign(run, { config: state.config, stops: [{ step: state.step, note: "" }], latest: run.curve.points.at(-1) });
  if (state.vocabulary) Object.assign(run.model, { options: optionTables(state.config), vocabulary: state.vocabulary });
  run.model.weights = { 0: state.parameters };
}
