// The engine: the program itself, compiled to WebAssembly. Its documents have the form of the JSON of `qkv predict`, `attend`,
// `explain`, `embed`, `ablate` and `generate`.

// Both are null in a browser that cannot run it.
const compiledModule = await compiled(), engine = compiledModule && await Module.start(compiledModule);
async function compiled() {
  if (!window.WebAssembly) return null;
  try {
    return await Module.compile($("module").textContent);
  } catch (error) {
    if (error instanceof WebAssembly.CompileError) return null;
    throw error;
  }
}

const initial = new Map();  // weights before the first step, by the model of a run
function initialOf({ config, model }) {
  return memo(initial, model, () => {
    engine.call({ call: "untrained", config, vocabulary: model.vocabulary });
    return new Float32Array(engine.take("parameters").buffer);
  });
}

// float32 of a checkpoint in the page, whose codes lie in planes of bytes, the low ones first. A code of fewer than 32 bits is the
// change since initialisation: it lies between -largest and largest of its parameter, and these before the planes.
function floatsOf({ at, bits }, run) {
  const { parameters } = run.model;
  const sizes = parameters.map(({ shape }) => shape.reduce((a, b) => a * b, 1)), count = d3.sum(sizes), codes = new Uint32Array(count);
  const first = bits === 32 ? at : at + 4 * sizes.length, largest = new Float32Array(weightBytes.slice(at, first).buffer);
  for (let plane = 0; 8 * plane < bits; ++plane)
    for (let i = 0, from = first + plane * count; i < count; ++i) codes[i] |= weightBytes[from + i] << 8 * plane;
  if (bits === 32) return new Float32Array(codes.buffer);
  const most = 2 ** bits - 1, floats = initialOf(run).slice();
  let i = 0;
  sizes.forEach((size, p) => {
    for (const end = i + size; i < end; ++i) floats[i] += (2 * codes[i] / most - 1) * largest[p];
  });
  return floats;
}

const loaded = new Map();  // by name in the engine: { model of a run, its weights }

// A checkpoint of a run after `changes`: { uniform, shuffled, without_positions: bool, off: id of a component }.
class Engine {
  constructor(run, checkpoint, changes) {
    Object.assign(this, { run, changes, weights: run.model.weights[checkpoint] });
  }
  // Weights are those of a checkpoint in the page, or float32 bytes. The engine has one checkpoint of a run at a time.
  load() {
    const { run: { name, config, model }, weights } = this, before = loaded.get(name);
    if (before && before.weights === weights) return;
    const described = before && before.model === model ? {} : { config, vocabulary: model.vocabulary };
    engine.put("parameters", weights instanceof Uint8Array ? weights : new Uint8Array(floatsOf(weights, this.run).buffer));
    Object.assign(model, engine.call({ call: "load", model: name, ...described }));
    loaded.set(name, { model, weights });
  }
  ask(call, request) {
    this.load();
    return engine.call({ call, model: this.run.name, changes: this.changes, ...request });
  }
  // A text as the model reads it; throws EngineError.
  read(text) { return new Reading(this, text); }
}

const writtenAtOnce = 8;  // tokens that a language model writes between two drawings

// A text as a model reads it: { tokens [T], ids [T], targets: positions that the task asks about, unknown [T], words,
// unknown_words, refusal: why there is no answer, or null, components: ids of heads and feed-forward blocks in the order of
// computing, "0.1", "0.ff", of two stacks "decoder.0.cross.1" }.
class Reading {
  constructor(engine, text) {
    Object.assign(this, { engine, text, documents: new Map(), ...engine.ask("read", { text }) });
  }
  ask(call, request = {}) {
    return memo(this.documents, JSON.stringify([call, request]), () => this.engine.ask(call, { text: this.text, ...request }));
  }

  get kind() { return this.engine.run.model.options.task.kind; }

  // About the task's words and, where it answers about words, token `word`.
  predict(word) { return this.ask("predict", { index: word }); }
  attend() { return this.ask("attend"); }
  // The explanation of token `index`, or of that of the output. Its parameters are large, and asked for when they are needed.
  explain(index, output) {
    const reading = this;
    return memo(this.documents, `explained ${index} ${output}`, () => ({
      ...this.ask("explain", { index, output }),
      get parameters() { return memo(reading.documents, "parameters", () => reading.engine.ask("explain", { text: reading.text, index, output, parameters: true }).parameters); },
    }));
  }
  // The vectors of a token, without `index` the means of all.
  embed(index) { return this.ask("embed", { index }); }
  // The vocabulary's words nearest to a token's static vector.
  nearest(index, count) { return this.ask("nearest", { index, count }); }
  // The ablation of the answer about `index`, or of the output.
  ablate(index) { return this.ask("ablate", { index }); }
  // Yields how a language model continues the text, longer each time, up to `count` tokens.
  *generate(count) {
    for (let tokens = writtenAtOnce, before = ""; tokens <= count; tokens += writtenAtOnce) {
      const { text } = this.engine.ask("generate", { text: this.text, tokens });
      if (text === before) return;
      yield before = text;
    }
  }
}
