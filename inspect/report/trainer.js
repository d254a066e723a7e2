// The trainings of some models, each in a worker of its own, so that they share the machine's cores. The first reads the data, and a
// copy of its memory goes from one of the others to the next.

const workerText = () => ["module-text", "worker-text"].map(id => $(id).textContent).join("\n");
let workerAddress = null;

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
// The learning curve of a model: its loss over the steps, and its evaluations.
class History {
  constructor() { Object.assign(this, { curve: new Means(), evaluations: [] }); }
  take({ losses, evaluations }) {
    for (const [step, loss] of losses) this.curve.add(step, loss);
    this.evaluations.push(...evaluations);
    if (this.evaluations.length > mostPoints) this.evaluations = this.evaluations.filter((_, i) => i % 2 === 1);
  }
  get loss() { return this.curve.points.length ? this.curve.points.at(-1)[1] : NaN; }
}

class Trainer {
  // `configs`: of the models; `first`: the message that is to follow at once, or null; `heard` is called with a model's index and each
  // message of its worker after this took it.
  constructor(compiled, configs, files, first, heard) {
    workerAddress = workerAddress || URL.createObjectURL(new Blob([workerText()], { type: "text/javascript" }));
    Object.assign(this, { facts: [], states: [], histories: configs.map(() => new History()), running: configs.map(() => false), message: null });
    const start = (i, rest) => this.workers[i].postMessage({ kind: "start", config: configs[i], isShared: i + 1 < configs.length, first, ...rest }, rest.memory ? [rest.memory.buffer] : []);
    this.workers = configs.map((_, i) => {
      const worker = new Worker(workerAddress);
      worker.onmessage = ({ data: message }) => {
        if (message.kind === "memory") start(i + 1, { memory: message.memory });
        this.take(i, message);
        heard(i, message);
      };
      worker.postMessage({ kind: "prepare", compiled });
      return worker;
    });
    start(0, { files });
  }
  take(i, { kind, facts, isRunning, state, message }) {
    if (kind === "started") this.facts[i] = facts;
    if (kind === "state") {
      this.states = Object.assign([...this.states], { [i]: state });
      this.histories[i].take(state);
      this.running[i] = isRunning;
    }
    if (kind === "error") {
      this.message = message;
      this.end();
    }
  }
  // Whether every model has a state.
  get isReady() { return this.workers.every((_, i) => this.states[i]); }
  get phase() {
    if (this.message !== null) return "failed";
    if (!this.isReady) return "starting";
    if (this.running.some(Boolean)) return "running";
    return this.states.every(({ isFinished }) => isFinished) ? "finished" : "paused";
  }
  run(until, speed) {
    this.running.fill(true);
    this.send({ kind: "run", until, speed });
  }
  pause() { this.send({ kind: "pause" }); }
  step() { this.send({ kind: "step" }); }
  drawn() { this.send({ kind: "frame" }); }
  export(i) { this.workers[i].postMessage({ kind: "export" }); }
  // Memory of WebAssembly cannot shrink: each training has workers of its own.
  end() { this.workers.forEach(worker => worker.terminate()); }
  send(message) { this.workers.forEach(worker => worker.postMessage(message)); }
}
