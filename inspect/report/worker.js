// A worker that trains a model. Its text follows that of module.js.
//
// Messages to it, by `kind`: "prepare" { compiled }, "start" { config, files: { path: text }, or memory: a copy of that of a worker
// which has read them, isShared: whether another worker waits for such a copy, first: the message that follows at once, or null }, then
// "run" { until, speed } (steps between two frames of the page at most), "pause", "step", "frame" (the page has drawn what it got) and
// "export".
// Messages from it: "memory" { memory }, "started" { facts of the call `train` }, "state" { isRunning, state: see `Training.state` },
// "exported" { bytes } and "error" { message }.

const slice = 60, evaluated = 20;  // ms of steps between two states; ms of steps for each ms of evaluation, at least

class Training {
  constructor(engine, { config, files = {}, isRead }) {
    for (const [path, text] of Object.entries(files)) engine.put(path, new TextEncoder().encode(text));
    this.facts = engine.call({ call: "train", config, same_files: isRead });
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

let starting = null, training = null, isRunning = false, isLooping = false, mayPost = true, until = 0, speed = Infinity, woken = () => {};

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

// Takes the steps of a slice; the very first is a slice of its own, to be shown at once.
function learn() {
  const begin = performance.now(), time = training.step ? slice : 0;
  for (let steps = 0; steps < speed && !isAtEnd() && (!steps || performance.now() - begin < time); ++steps) training.learn();
  if (isAtEnd()) isRunning = false;
  if (!isRunning || training.isDue) training.evaluate();
}

// Messages are read between two slices. The first step and each slice of a slow speed wait for their frame; else states are left out
// while the page draws.
async function run() {
  if (isLooping) return;
  isLooping = true;
  try {
    while (isRunning) {
      learn();
      if (mayPost || !isRunning) postState();
      await (isRunning && (Number.isFinite(speed) || training.step === 1) ? frame() : breath());
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

const pass = memory => postMessage({ kind: "memory", memory }, [memory.buffer]);

const answers = {
  prepare({ compiled }) {
    starting = Module.start(compiled);
  },
  async start({ isShared, first, memory = null, ...model }) {
    const engine = await starting;
    if (memory) engine.takeMemory(memory);
    if (memory && isShared) pass(memory);
    training = new Training(engine, { ...model, isRead: memory !== null });
    if (!memory && isShared) pass(engine.memory.slice());
    postMessage({ kind: "started", facts: training.facts });
    if (first) return answers[first.kind](first);
    rest();
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
