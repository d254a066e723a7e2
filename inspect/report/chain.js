// The steps of a word from its embedding to the answer, of a document as of `qkv explain`, for one head of one layer:
// groups [{ title, steps: [{ id, text, meaning, vectors, chips, numbers }] }]. `text` is a formula, `meaning` the key of a text,
// `vectors` [{ symbol, word, values }] and `chips` [{ name, value, shown, isChosen, pick }] what it computes, and `more` left out; `numbers()` what it unfolds.

const isSame = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);
// The chosen element of a product with a matrix, by the id of its step.
const picked = new Map();

class Chain {
  // `chosen`: { layer, head, key }; `options` of a run's "model" in the page.
  constructor(document, chosen, options) {
    const { index, inputs, tokens } = document, words = inputs || tokens;
    Object.assign(this, { document, ...chosen, index, words, model: options.model, kind: options.task.kind, groups: [], known: new Map(), before: null, part: "input" });
    const first = inputs ? document.steps.findIndex(({ path }) => path === "contextual") + 1 : 0;
    for (const record of document.steps.slice(first)) this.add(record);
    this.addAnswer();
  }

  get word() { return this.words[this.index]; }
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
    const { index, words, before } = this, { path } = module, cross = path.endsWith("cross_attention"), h = Math.min(this.head, module.heads.length - 1);
    const head = module.heads[h], width = head.q[0].length, sources = cross ? this.document.tokens : words;
    const title = [part, partName({ kind: cross ? "cross" : "head", head: h })].join(", "), key = Math.min(this.key, sources.length - 1);
    const source = cross ? this.document.steps.find(step => step.path === "contextual").values : before.values;
    for (const letter of ["q", "k", "v"]) {
      const isQuery = letter === "q", at = isQuery ? index : key, input = (isQuery ? before.values : source)[at], all = isQuery ? [index] : d3.range(sources.length);
      const symbol = `${letter}_${isQuery ? "i" : "j"}`, names = isQuery ? words : sources, rows = this.rowsOf(`${path}.w_${letter}`, h, module.heads.length, width);
      const text = projectionOf(this, letter, Boolean(rows), cross), inputName = text.match(/[a-z](?=_[ij]\b(?! =))/g).pop();
      this.push(title, { id: `${path}.${letter}`, text: this.formula(text), meaning: `step.${letter}`,
        more: all.length - mostCells, vectors: all.slice(0, mostCells).map(n => ({ symbol: `${letter}_${n}`, word: names[n], values: head[letter][n] })),
        numbers: () => [...(rows ? productNumbers(this, { id: `${path}.${letter}`, matrix: `W_${letter}`, input: { symbol: `${inputName}_${at}`, word: names[at], values: input }, ...rows,
                                                         outputs: head[letter][at] }) : []),
                        ...all.slice(0, mostCells).map(n => valuesLine(this, `${letter}_${n}`, head[letter][n]))] });
    }
    this.addWeights({ module, head, width, sources, key, title });
    this.known.set("z_i", module.heads.flatMap(({ mixed }) => [...mixed[index]]));
    if (module.heads.length > 1) this.push(part, { id: `${path}.mixed`, text: "z_i", meaning: "step.heads", vectors: [{ symbol: "z_i", word: this.word, values: this.known.get("z_i") }],
      numbers: () => module.heads.map(({ mixed }, n) => valuesLine(this, t("part.head", { head: n }), mixed[index])) });
  }
  // Rows of a head's part of a projection and their biases; heads of queries share those of keys and values where these are fewer.
  rowsOf(path, head, heads, width) {
    const matrix = this.parameter(`${path}.weight`), bias = this.parameter(`${path}.bias`);
    if (!matrix) return null;
    const first = Math.floor(head * matrix.length / width / heads) * width;
    return { rows: matrix.slice(first, first + width), bias: bias && bias.slice(first, first + width) };
  }
  addWeights({ module, head, width, sources, key, title }) {
    const { index } = this, { path, scale, mask } = module, usual = Math.abs(scale - width ** -0.5) < 1e-6;
    const isBiased = Boolean(this.parameter(`${path}.positions.weight`)), isHidden = j => !mask[index][j], more = sources.length - mostCells;
    const chips = (values, shown = v => fixed(v, 4)) => Array.from(values).slice(0, mostCells)
      .map((value, j) => ({ name: sources[j], value: isHidden(j) ? 0 : value, shown: isHidden(j) ? t("chain.masked") : shown(value), isChosen: j === key, pick: () => choose({ key: j }) }));
    const row = { index, key, sources, isHidden, scale, scores: head.scores[index], scaled: head.scaled[index], weights: head.weights[index] };
    this.push(title, { id: `${path}.scores`, text: "s_ij = q_i . k_j", meaning: "step.scores", chips: chips(row.scores), more, numbers: () => scoreNumbers(this, head, row) });
    this.push(title, { id: `${path}.scaled`, text: `s'_ij = s_ij ${usual ? `/ sqrt(${width})` : `* ${significant(scale)}`}${isBiased ? " + bias" : ""}`,
                       meaning: isBiased ? "step.scaled_bias" : "step.scaled", chips: chips(row.scaled), more, numbers: () => scaledNumbers(row) });
    this.push(title, { id: `${path}.weights`, text: "w_ij = exp(s'_ij) / Σ_j exp(s'_ij)", meaning: "step.weights", chips: chips(row.weights), more, numbers: () => weightNumbers(row) });
    this.push(title, { id: `${path}.sum`, text: "z_i = Σ_j w_ij v_j", meaning: "step.sum", vectors: [{ symbol: "z_i", word: this.word, values: head.mixed[index] }],
                       numbers: () => sumNumbers(this, head, row) });
  }

  // The likeliest choices, as `qkv explain` prints them.
  addAnswer() {
    const { labels, logits, probabilities } = this.document, title = t("chain.answer"), y = this.before.values;
    if (!labels.length) return this.push(title, { id: "answer", text: "", meaning: "step.no_answers" });
    const order = d3.range(labels.length).sort((a, b) => logits[b] - logits[a]).slice(0, mostChoices), best = order[0];
    const chips = (values, shown) => order.map(i => ({ name: labels[i], value: Number.isFinite(values[i]) ? values[i] : 0, shown: Number.isFinite(values[i]) ? shown(values[i]) : "−∞", isChosen: i === best }));
    const formula = { classify: "W mean(y) + b", coreference: "y_j . (W y_i + b) / sqrt(D)" }[this.kind] || "W y_i + b";
    this.push(title, { id: "logits", text: `logits = ${this.formula(formula)}`, meaning: "step.logits", chips: chips(logits, v => fixed(v, 4)), numbers: () => logitNumbers(this, order, y) });
    this.push(title, { id: "probabilities", text: "p = softmax(logits)", meaning: "step.probabilities", chips: chips(probabilities, v => sure(v, labels)), numbers: () => probabilityNumbers(order, this.document) });
  }
}

// "q_i = W_q x_i + b_q"; m: the encoder's vectors.
function projectionOf({ model }, letter, isProjected, cross) {
  const at = letter === "q" ? "i" : "j", x = `${cross && letter !== "q" ? "m" : model.norm === "pre" && model.attention !== "parameter-free" ? "h" : "x"}_${at}`;
  const product = isProjected ? `W_${letter} ${x} + b_${letter}` : x, rotates = model.position === "rotary" && model.attention !== "uniform" && letter !== "v" && !cross;
  return `${letter}_${at} = ${rotates ? `rotary(${product})` : product}`;
}

// The key of the words about what is recorded.
function recordMeaning(path, formula) {
  if (formula.startsWith("norm(")) return "step.residual_norm";
  const found = [[/norm\w*\.output$/, "norm"], [/attention\.output$/, "output"], [/feed_forward\.output$/, "feed_forward"],
                 [/attended$|layers\.\d+\.output$/, "residual"], [/^static$/, "static"], [/^typed$/, "typed"], [/^position$/, "position"], [/^input$/, "input"]].find(([form]) => form.test(path));
  return `step.${found ? found[1] : "contextual"}`;
}
