// A worker that trains a model. Its text follows that of module.js.
//
// Messages to it, by `kind`: "start" { compiled, config, files: { path: text }, isAwaited: steps follow at once, so that evaluating
// the untrained model would delay them }, then "run" { until, speed } (steps between two frames of the page at most), "pause", "step",
// "frame" (the page has drawn what it got) and "export".
// Messages from it: "started" { facts of the call `train` }, "state" { isRunning, state: see `Training.state` },
// "exported" { bytes } and "error" { message }.

const slice = 60, evaluated = 20;  // ms of steps between two states; ms of steps for each ms of evaluation, at least

class Training {
  constructor(engine, { config, files }) {
    for (const [path, text] of Object.entries(files)) engine.put(path, new TextEncoder().encode(text));
    this.facts = engine.call({ call: "train", config });
    Object.assign(this, { engine, step: 0, losses: [], isFinished: false, isDescribed: false, trained: 0, evaluation: null, evaluations: [], cost: slice });
  }
  learn() {
    const begin = performance.now(), { step, losses, finished } = this.engine.call({ call: "step", count: 1 });
    const time = performance.now() - begin;
    losses.forEach((loss, i) => this.losses.push([step - losses.length + 1 + i, loss]));
    Object.assign(this, { step, isFinished: finished, trained: this.trained + time, time: this.time === undefined ? time : 0.9 * this.time + 0.1 * time });
  }
  // Evaluates on the validation data, where there are any, unless this was done at this step.
  evaluate() {
    if (!this.facts.examples.valid || (this.evaluation && this.evaluation.step === this.step)) return;
    const begin = performance.now(), { score_name: score } = this.facts, { loss, [score]: value } = this.engine.call({ call: "evaluate", split: "valid" });
    this.evaluation = { step: this.step, split: "valid", loss, [score]: value };
    this.evaluations.push(this.evaluation);
    Object.assign(this, { cost: performance.now() - begin, trained: 0 });
  }
  get isDue() { return this.trained >= evaluated * this.cost; }
  // The losses and evaluations since the last state, and the parameters; config and vocabulary come with the first alone.
  state() {
    const { step, losses, time, isFinished, evaluations } = this, document = this.engine.call({ call: "parameters", brief: this.isDescribed });
    Object.assign(this, { losses: [], evaluations: [], isDescribed: true });
    return { ...document, step, losses, time, isFinished, evaluations, parameters: this.engine.take("parameters") };
  }
}

let training = null, isRunning = false, isLooping = false, mayPost = true, until = 0, speed = Infinity, woken = () => {};

const channel = new MessageChannel();
const breath = () => new Promise(done => {
  channel.port1.onmessage = done;
  channel.port2.postMessage(null);
});
const frame = () => new Promise(done => { woken = done; });

const isAtEnd = () => training.isFinished || training.step >= until;

function postState() {
  const state = training.state();
  mayPost = false;
  postMessage({ kind: "state", isRunning, state }, [state.parameters.buffer]);
}

function learn() {
  const begin = performance.now();
  for (let steps = 0; steps < speed && performance.now() - begin < slice && !isAtEnd(); ++steps) training.learn();
  if (isAtEnd()) isRunning = false;
  if (!isRunning || training.isDue) training.evaluate();
}

// Messages are read between two slices. A slow speed waits for the frame of each; else states are left out while the page draws.
async function run() {
  if (isLooping) return;
  isLooping = true;
  try {
    while (isRunning) {
      learn();
      if (mayPost || !isRunning) postState();
      await (isRunning && Number.isFinite(speed) ? frame() : breath());
    }
  } finally {
    isLooping = false;
  }
}

// After a pause the last state may have been left out, and the evaluation is old.
function rest() {
  isRunning = false;
  training.evaluate();
  postState();
}

const answers = {
  async start({ compiled, isAwaited, ...model }) {
    training = new Training(await Module.start(compiled), model);
    postMessage({ kind: "started", facts: training.facts });
    if (isAwaited) postState();
    else rest();
  },
  run(message) {
    ({ until, speed } = message);
    isRunning = true;
    return run();
  },
  pause() {
    if (!isRunning) return;
    rest();
    woken();
  },
  step() {
    if (!training.isFinished) training.learn();
    rest();
  },
  frame() {
    mayPost = true;
    woken();
  },
  export() {
    training.engine.call({ call: "export" });
    const bytes = training.engine.take("model.safetensors");
    postMessage({ kind: "exported", bytes }, [bytes.buffer]);
  },
};

onmessage = async ({ data: { kind, ...message } }) => {
  try {
    await answers[kind](message);
  } catch (error) {
    isRunning = false;
    postMessage({ kind: "error", message: error.message });
  }
};
