// The document of `qkv explain --json` of a word, without its logit lens and attribution: { tokens, ids, index,
// steps: [{ path, symbol, formula, values [T][D] }], attention: [{ path, scale, mask, heads: [{ q, k, v, scores, scaled, weights,
// mixed }] }], labels, logits, probabilities, parameters: { path: values } }. Of an output token of an encoder-decoder, `index`
// counts `inputs`, and it has { inputs, outputs }, too.
function explanation(reading, index, isOfOutput) {
  const { model, task, tokens, ids, translation } = reading, recorder = new Map();
  Object.assign(model, { recorder, attentions: [] });
  const x = model.contextual(ids), start = task.tokenizer.id("<bos>");
  const y = isOfOutput ? model.decode([start, ...translation.kept], x) : null, { attentions } = model;
  model.recorder = null;
  const { choices, logits } = y ? { choices: task.tokenizer.tokens, logits: model.logits(y[index]) }
    : reading.kind !== "translate" && task.hasAnswer(reading.sentence) ? task.scores(model, reading.sentence, x, index) : { choices: [], logits: [] };
  return {
    tokens, ids, index, attention: attentions.map(moduleDocument), labels: choices, logits, probabilities: softmax(logits),
    steps: [...recorder].map(([path, values]) => ({ path, ...formulaOf(model, path), values })),
    get parameters() { return memo(nested, model, () => usedParameters(model)); },
    ...(y ? { inputs: translation.inputs, outputs: translation.outputs } : {}),
  };
}

// Scores of masked keys are computed and have no weight.
function moduleDocument({ stack, layer, cross, scale, heads }) {
  const [{ k, weights }] = heads, whole = rows => rows.map(row => Float32Array.from(k, (_, j) => row[j] || 0));
  return { path: `${stack}.layers.${layer}.${cross ? "cross_attention" : "attention"}`, scale,
           mask: weights.map(row => Uint8Array.from(k, (_, j) => j < row.length)),
           heads: heads.map(head => {
             const scores = head.q.map(row => Float32Array.from(head.k, key => dot(row, key)));
             return { q: head.q, k: head.k, v: head.v, scores, weights: whole(head.weights),
                      scaled: scores.map((row, t) => row.map((score, j) => score * scale + head.bias(t, j))),
                      mixed: head.weights.map(row => head.v[0].map((_, i) => d3.sum(row, (weight, j) => weight * head.v[j][i]))) };
           }) };
}

const nested = new WeakMap();  // parameters by model
// All but the embedding table, whose rows in use are the static vectors; that too where it serves as the output layer.
function usedParameters(model) {
  const rows = ([size, ...sizes], values) => {
    const length = values.length / size;
    return sizes.length ? d3.range(size).map(i => rows(sizes, values.subarray(i * length, (i + 1) * length))) : values;
  };
  const isUsed = path => !model.parameter("head.weight") || path !== "embedding.weight" && path !== "token_types.weight";
  return Object.fromEntries([...model.parameters].filter(([path]) => isUsed(path)).map(([path, { shape, values }]) => [path, rows(shape, values)]));
}

const normOf = (x, epsilon) => `(${x} - mean(${x})) / sqrt(var(${x}) + ${epsilon}) * g + b`;

// The symbol and formula of what is recorded, from the tables of layers/model.cpp, attention.cpp and transformer.cpp.
function formulaOf(model, path) {
  const epsilon = model.options.kind === "bert" ? "1e-12" : "1e-5", [, module, inAttention] = path.match(/^(.*attention)\.(\w+)$/) || [];
  const [, block, inBlock] = path.match(/^(\w+\.layers\.\d+)\.(.*)$/) || [];
  const [symbol, formula] = module ? attentionFormula(model, module, inAttention) : block ? blockFormula(model, block, epsilon)[inBlock] : modelFormula(model, path, epsilon);
  return { symbol, formula };
}
function attentionFormula(model, module, name) {
  if (name !== "output") return [`${name}_i`, ""];
  return ["o_i", model.parameter(`${module}.w_o.weight`) ? "W_o z_i + b_o" : "z_i"];
}
function blockFormula(model, block, epsilon) {
  const { norm } = model.options, pre = norm === "pre", post = norm === "post", has = name => model.parameter(`${block}.${name}.weight`);
  const normalized = (symbol, input, change) => post ? ["x_i", `norm(x_i + ${change})`] : [symbol, normOf(input, epsilon)];
  return {
    "norm_1.output": normalized("h_i", "x_i", "o_i"), attended: ["x'_i", "x_i + o_i"],
    "norm_cross.output": normalized("h_i", "x'_i", "o_i"), cross_attended: ["x'_i", "x'_i + o_i"],
    "norm_2.output": normalized("h'_i", "x'_i", "f_i"), "feed_forward.output": ["f_i", `W_2 gelu(W_1 ${pre ? "h'_i" : post ? "x_i" : "x'_i"} + b_1) + b_2`],
    output: ["x_i", has("feed_forward.w_1") ? "x'_i + f_i" : has("attention.w_v") ? "x_i + o_i" : "o_i"],
  };
}
function modelFormula(model, path, epsilon) {
  if (path.endsWith("norm.output")) return path === "input_norm.output" ? ["x_i", normOf("x_i", epsilon)] : ["y_i", normOf("x_i", epsilon)];
  if (/coder\.(in|out)put$/.test(path)) return [path.endsWith("input") ? "x_i" : "y_i", ""];
  return { static: ["e_i", "E[token_i]"], typed: ["t_i", "e_i + T_0"], position: ["p_i", "P_i"], contextual: ["y_i", ""], decoded: ["y_i", ""],
           input: ["x_i", model.options.kind === "bert" ? "t_i + p_i" : "e_i + p_i"] }[path];
}
