// The steps of a word from its embedding to the answer, of a document as of `qkv explain`, for one head of one layer:
// groups [{ title, steps: [{ id, text, meaning, vectors, chips, numbers }] }]. `text` is a formula, `meaning` the key of a text,
// `vectors` [{ symbol, word, values }] and `chips` [{ name, value, shown, isChosen, pick }] what it computes, and `more` left out; `numbers()` what it unfolds.

const isSame = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);
// The chosen element of a product with a matrix, by the id of its step.
const picked = new Map();

class Chain {
  // `chosen`: { layer, head, key }; `options` and `parameters` of a run's "model" in the page.
  constructor(document, chosen, { options, parameters }) {
    const { index, inputs, tokens } = document, sources = tokens.map(shownToken), words = inputs ? inputs.map(shownToken) : sources;
    Object.assign(this, { document, ...chosen, index, words, sources, model: options.model, kind: options.task.kind, groups: [], known: new Map(), before: null, part: "input", paths: new Set(parameters.map(({ path }) => path)) });
    const first = inputs ? document.steps.findIndex(({ path }) => path === "contextual") + 1 : 0;
    for (const record of document.steps.slice(first)) this.add(record);
    this.addAnswer();
  }

  get word() { return this.words[this.index]; }
  // Whether the model has a parameter, which takes no asking for its values.
  has(path) { return this.paths.has(path); }
  parameter(path) { return this.document.parameters[path]; }
  // A model without biases has formulas without them.
  formula(text) { return this.model.bias ? text : text.replace(/ \+ b(_\w+)?/g, ""); }
  push(title, step) {
    const last = this.groups[this.groups.length - 1];
    if (last && last.title === title) last.steps.push(step);
    else this.groups.push({ title, steps: [step] });
  }

  add(record) {
    const { path } = record, [, stack, layer] = path.match(/^(encoder|decoder)\.layers\.(\d+)\./) || [];
    const module = this.document.attention.find(({ path: of }) => path.startsWith(`${of}.`) && path !== `${of}.output`);
    if (stack) this.part = "result";
    const title = stack ? layerName({ stack: this.model.kind === "encoder-decoder" ? stack : "", layer }) : t(`chain.${this.part}`);
    if (stack && Number(layer) !== this.layer) {
      if (path !== `${stack}.layers.${layer}.output`) return;
      this.push(title, { id: path, text: record.symbol, meaning: "step.other_layer", follow: Number(layer), ...this.result(record) });
    } else if (module) {
      if (path.endsWith(".q")) this.addHead(module, title);
      return;
    } else {
      this.addRecord(record, title);
    }
    this.known.set(record.symbol, record.values[this.index]);
    this.before = record;
  }
  result({ symbol, values }) {
    const vector = values[this.index];
    return { vectors: [{ symbol, word: this.word, values: vector }], numbers: () => [valuesLine(this, symbol, vector)] };
  }
  // A module recorded its result, and the module around it may do so again.
  addRecord(record, title) {
    const { path, symbol, formula, values } = record, { before, index } = this;
    if (before && isSame(before.values[index], values[index])) {
      if (before.symbol !== symbol) this.push(title, { id: path, text: `${symbol} = ${before.symbol}` });
      return;
    }
    this.push(title, { id: path, text: formula ? `${symbol} = ${this.formula(formula)}` : symbol, meaning: recordMeaning(path, formula),
                       ...this.result(record), numbers: recordNumbers(this, record) });
  }

  // The chosen head of an attention module, whose input is what was recorded before.
  addHead(module, part) {
    const { index, words } = this, { path, heads } = module, isCross = path.endsWith("cross_attention"), h = Math.min(this.head, heads.length - 1);
    const sources = isCross ? this.sources : words, key = Math.min(this.key, sources.length - 1), head = heads[h];
    const at = { path, h, heads, isCross, head, sources, key, title: [part, partName({ kind: isCross ? "cross" : "head", head: h })].join(", ") };
    for (const letter of ["q", "k", "v"]) this.addProjection(letter, at);
    this.addWeights(module, at);
    const values = heads.flatMap(({ mixed }) => [...mixed[index]]);
    this.known.set("z_i", values);
    if (heads.length === 1) return;
    this.push(part, { id: `${path}.mixed`, text: "z_i", meaning: "step.heads", vectors: [{ symbol: "z_i", word: this.word, values }],
                      numbers: () => heads.map(({ mixed }, n) => valuesLine(this, t("part.head", { head: n }), mixed[index])) });
  }
  // The query of the word, or keys or values of all of them, whose numbers are those of the chosen key.
  addProjection(letter, { path, h, heads, isCross, head, sources, key, title }) {
    const { index, before } = this, isQuery = letter === "q", of = isQuery ? [index] : d3.range(sources.length), at = isQuery ? index : key;
    const words = isQuery ? this.words : sources, values = head[letter], matrix = `${path}.w_${letter}`, isProduct = this.has(`${matrix}.weight`);
    const source = isCross && !isQuery ? this.document.steps.find(step => step.path === "contextual").values : before.values;
    const { text, x, meaning } = projectionOf(this.model, letter, isCross, isProduct), id = `${path}.${letter}`;
    const input = { symbol: `${x}_${at}`, word: words[at], values: source[at] };
    const vectors = of.slice(0, mostCells).map(n => ({ symbol: `${letter}_${n}`, word: words[n], values: values[n] }));
    this.push(title, { id, text: this.formula(text), meaning, vectors, more: of.length - mostCells, numbers: () => [
      ...(isQuery ? [] : [chosenKey({ key, sources })]), ...(isProduct ? productNumbers(this, { id, matrix: `W_${letter}`, input, ...this.rowsOf(matrix, h, heads.length, values[0].length), outputs: values[at] }) : []),
      ...vectors.map(vector => valuesLine(this, vector.symbol, vector.values))] });
  }
  // Rows of a head's part of a projection and their biases; heads of queries share those of keys and values where these are fewer.
  rowsOf(path, head, heads, width) {
    const matrix = this.parameter(`${path}.weight`), bias = this.parameter(`${path}.bias`);
    const first = Math.floor(head * matrix.length / width / heads) * width;
    return { rows: matrix.slice(first, first + width), bias: bias && bias.slice(first, first + width) };
  }
  addWeights({ path, scale, mask }, { head, sources, key, title }) {
    const { index } = this, width = head.q[0].length, isUsual = Math.abs(scale - width ** -0.5) < 1e-6, isBiased = this.has(`${path}.positions.weight`);
    const isHidden = j => !mask[index][j], row = { key, sources, isHidden, scale, scores: head.scores[index], scaled: head.scaled[index], weights: head.weights[index] };
    const add = (name, text, meaning, numbers) => this.push(title, { id: `${path}.${name}`, text, meaning, more: sources.length - mostCells, numbers,
      chips: Array.from(row[name]).slice(0, mostCells).map((value, j) => ({ name: sources[j], isChosen: j === key, pick: () => choose({ key: j }),
        ...(isHidden(j) ? { value: 0, shown: t("chain.masked") } : { value, shown: fixed(value, 4) }) })) });
    add("scores", "s_ij = q_i . k_j", "step.scores", () => scoreNumbers(this, head, row));
    add("scaled", `s'_ij = s_ij ${isUsual ? `/ sqrt(${width})` : `* ${significant(scale)}`}${isBiased ? " + bias" : ""}`, isBiased ? "step.scaled_bias" : "step.scaled", () => scaledNumbers(row));
    add("weights", "w_ij = exp(s'_ij) / Σ_j exp(s'_ij)", "step.weights", () => weightNumbers(row));
    this.push(title, { id: `${path}.sum`, text: "z_i = Σ_j w_ij v_j", meaning: "step.sum", vectors: [{ symbol: "z_i", word: this.word, values: head.mixed[index] }],
                       numbers: () => sumNumbers(this, head, row) });
  }

  // The likeliest choices, as `qkv explain` prints them.
  addAnswer() {
    const { labels, logits, probabilities } = this.document, title = t("chain.answer"), y = this.before.values;
    if (!labels.length) return this.push(title, { id: "answer", text: "", meaning: "step.no_answers" });
    const order = d3.range(labels.length).sort((a, b) => logits[b] - logits[a]).slice(0, mostChoices);
    const chips = (values, shown) => order.map((i, n) => ({ name: labels[i], value: Number.isFinite(values[i]) ? values[i] : 0, shown: shown(values[i]), isChosen: !n }));
    const formula = { classify: "W mean(y) + b", coreference: "y_j . (W y_i + b) / sqrt(D)" }[this.kind] || "W y_i + b";
    this.push(title, { id: "logits", text: `logits = ${this.formula(formula)}`, meaning: "step.logits", chips: chips(logits, logitText), numbers: () => logitNumbers(this, order, y) });
    this.push(title, { id: "probabilities", text: "p = softmax(logits)", meaning: "step.probabilities", chips: chips(probabilities, v => sure(v, labels)),
                       numbers: () => probabilityNumbers(order, this.document) });
  }
}

// { text: "q_i = W_q x_i + b_q", x: "x", meaning }; m: the encoder's vectors.
function projectionOf({ norm, attention, position }, letter, isCross, isProjected) {
  const at = letter === "q" ? "i" : "j", isOfSource = isCross && letter !== "q", x = isOfSource ? "m" : norm === "pre" && attention !== "parameter-free" ? "h" : "x";
  const product = isProjected ? `W_${letter} ${x}_${at} + b_${letter}` : `${x}_${at}`, rotates = position === "rotary" && attention !== "uniform" && letter !== "v" && !isCross;
  return { text: `${letter}_${at} = ${rotates ? `rotary(${product})` : product}`, x, meaning: `step.${letter}${rotates ? "_rotary" : isOfSource ? "_cross" : ""}` };
}

// The key of the words about what is recorded.
function recordMeaning(path, formula) {
  if (formula.startsWith("norm(")) return "step.residual_norm";
  const found = [[/norm\w*\.output$/, "norm"], [/attention\.output$/, "output"], [/feed_forward\.output$/, "feed_forward"],
                 [/attended$|layers\.\d+\.output$/, "residual"], [/^static$/, "static"], [/^typed$/, "typed"], [/^position$/, "position"], [/^input$/, "input"]].find(([form]) => form.test(path));
  return `step.${found ? found[1] : "contextual"}`;
}
