// A training in a worker, of one model or of two that take their steps in turn.

const workerText = () => ["module-text", "worker-text"].map(id => $(id).textContent).join("\n");
let workerAddress = null;

class Trainer {
  // `models`: [{ config, files }]; `heard` is called with each message of the worker after this took it.
  constructor(compiled, models, heard) {
    workerAddress = workerAddress || URL.createObjectURL(new Blob([workerText()], { type: "text/javascript" }));
    Object.assign(this, { phase: "starting", facts: [], states: [], mine: new Worker(workerAddress) });
    this.mine.onmessage = ({ data: message }) => {
      this.take(message);
      heard(message);
    };
    this.mine.postMessage({ kind: "start", compiled, models });
  }
  take({ kind, models, isRunning, message }) {
    if (kind === "started") this.facts = models;
    if (kind === "error") Object.assign(this, { phase: "failed", message });
    if (kind !== "state") return;
    this.states = models;
    this.phase = isRunning ? "running" : models.every(model => model.isFinished) ? "finished" : "paused";
  }
  run(until, speed) {
    this.phase = "running";
    this.mine.postMessage({ kind: "run", until, speed });
  }
  pause() { this.mine.postMessage({ kind: "pause" }); }
  step() { this.mine.postMessage({ kind: "step" }); }
  drawn() { this.mine.postMessage({ kind: "frame" }); }
  export(model) { this.mine.postMessage({ kind: "export", model }); }
  // Memory of WebAssembly cannot shrink: each training has a worker of its own.
  end() { this.mine.terminate(); }
}
