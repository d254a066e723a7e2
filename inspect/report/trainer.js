// The trainings of some models, each in a worker of its own, so that they share the machine's cores.

const workerText = () => ["module-text", "worker-text"].map(id => $(id).textContent).join("\n");
let workerAddress = null;

class Trainer {
  // `models`: [{ config, files, isAwaited: whether steps follow at once }]; `heard` is called with a model's index and each message of
  // its worker after this took it.
  constructor(compiled, models, heard) {
    workerAddress = workerAddress || URL.createObjectURL(new Blob([workerText()], { type: "text/javascript" }));
    Object.assign(this, { facts: [], states: [], running: models.map(() => false), message: null });
    this.workers = models.map((model, i) => {
      const worker = new Worker(workerAddress);
      worker.onmessage = ({ data: message }) => {
        this.take(i, message);
        heard(i, message);
      };
      worker.postMessage({ kind: "start", compiled, ...model });
      return worker;
    });
  }
  take(i, { kind, facts, isRunning, state, message }) {
    if (kind === "started") this.facts[i] = facts;
    if (kind === "state") {
      this.states = Object.assign([...this.states], { [i]: state });
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
