// The numbers that a step of the arithmetic unfolds.

// "W_q x_i + b_q" as nodes with subscripts, i the number of the word.
function formulaNodes(text, index) {
  const signs = text.replace(/sqrt\(/g, "√(").replace(/ - /g, " − ").replace(/ \. /g, " · ").replace(/ \* /g, " × ");
  return signs.split(/_([a-z0-9]+)/).map((part, n) => n % 2 ? make("sub", {}, /^ij?$/.test(part) ? part.replace("i", index) : part) : part);
}
const labelOf = ({ index }, symbol, word) => [make("span", { class: "symbol" }, ...formulaNodes(symbol, index)), ...(word === undefined ? [] : [" ", word])];

// Strips in one scale, of vectors { symbol, word, values }.
function stripsOf(chain, vectors) {
  const most = d3.max(vectors, ({ values }) => d3.max(values, Math.abs)) || 1;
  return make("div", { class: "vectors" }, ...strips(vectors.map(({ symbol, word, values }) => {
    const label = labelOf(chain, symbol, word);
    return { label, name: label.map(part => part.textContent || part).join(""), values, most };
  })));
}
// "q_2 = (0.1234, -0.5678)"
function valuesLine(chain, symbol, values) {
  return make("p", { class: "values" }, make("span", { class: "symbol" }, ...formulaNodes(symbol, chain.index)), ` = (${Array.from(values, v => fixed(v, 4)).join("; ")})`);
}
const line = (key, values) => make("p", { class: "values" }, t(key, values));

// columns: names; rows: cells.
function numbersTable(name, columns, rows) {
  const head = make("tr", {}, ...columns.map(text => make("th", { scope: "col" }, text)));
  const body = rows.map(([first, ...cells]) => make("tr", {}, make("th", { scope: "row" }, first), ...cells.map((text, i) => make("td", { "data-name": columns[i + 1] }, text))));
  return make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": name }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

// A product with a matrix and how one of its elements comes about: { id, matrix, input: { symbol, word, values }, rows, bias,
// outputs }, and `choices` [[element, name]], all elements where not given.
function productNumbers(chain, { id, matrix, input, rows, bias, outputs, choices }) {
  const all = choices || d3.range(rows.length).map(d => [d, String(d)]), nameOf = d => t("numbers.row", { d: all.find(([element]) => element === d)[1] });
  const d = all.some(([element]) => element === picked.get(id)) ? picked.get(id) : all[0][0];
  const products = Array.from(input.values, (v, i) => v * rows[d][i]), sum = d3.sum(products), added = bias ? bias[d] : 0, is = sum + added;
  const pick = menu(`element ${id}`, t("numbers.element"), all, d, element => {
    picked.set(id, element);
    showNumbers(id);
  });
  const values = { sum: fixed(sum, 4), bias: fixed(added, 4), value: fixed(is, 4) }, isRotated = Math.abs(is - outputs[d]) > 1e-3 * (1 + Math.abs(is));
  return [stripsOf(chain, [input]), stripsOf(chain, all.slice(0, mostCells).map(([element]) => ({ symbol: matrix, word: nameOf(element), values: rows[element] }))), pick,
          stripsOf(chain, [{ symbol: "×", word: nameOf(d), values: products }]), line(bias ? "numbers.product_bias" : "numbers.product", values),
          ...(isRotated ? [line("numbers.rotated", { value: fixed(outputs[d], 4) })] : [])];
}

// The arithmetic of a recorded vector, from the vectors that its formula names.
function recordNumbers(chain, { path, symbol, formula, values }) {
  const { known, document, word, index } = chain, owner = path.replace(/\.output$/, ""), result = { symbol, values: values[index] };
  const operands = [...new Set(formula.match(/[a-z]'?_i/g) || [])].filter(name => known.has(name)).map(name => ({ symbol: name, values: known.get(name) }));
  const lines = () => [...operands, result].map(vector => valuesLine(chain, vector.symbol, vector.values));
  // The document has the ids of the text, not of an output.
  if (path === "static") return () => [...(document.inputs ? [] : [line("numbers.embedding", { word, id: String(document.ids[index]) })]), ...lines()];
  const [input] = operands, parameter = part => chain.parameter(`${owner}.w_o.${part}`);
  if (chain.has(`${owner}.w_o.weight`))
    return () => [...productNumbers(chain, { id: path, matrix: "W_o", input, rows: parameter("weight"), bias: parameter("bias"), outputs: result.values }), ...lines()];
  const isNorm = /norm|mean/.test(formula);
  return () => [...(operands.length ? [stripsOf(chain, [...operands, result])] : []), ...(isNorm ? normNumbers(chain, owner, operands) : []), ...lines()];
}
// Mean and variance of the sum of `operands`, and the norm's parameters.
function normNumbers(chain, owner, operands) {
  const x = operands.map(({ values }) => values).reduce((a, b) => a.map((v, i) => v + b[i])), mean = d3.mean(x), variance = d3.mean(x, v => (v - mean) ** 2);
  const trained = [["g", "weight"], ["b", "bias"]].map(([symbol, part]) => ({ symbol, values: chain.parameter(`${owner}.${part}`) })).filter(({ values }) => values);
  return [...(trained.length ? [stripsOf(chain, trained)] : []), line("numbers.norm", { mean: fixed(mean, 4), variance: fixed(variance, 4) })];
}

const chosenKey = ({ key, sources }) => line("numbers.choose_key", { word: sources[key] });
const keyName = ({ sources }, j) => `${j} ${sources[j]}`;
// The dot product of the query and the chosen word's key, and all scores.
function scoreNumbers(chain, { q, k }, row) {
  const { index } = chain, { key, scores } = row, products = Array.from(q[index], (v, d) => v * k[key][d]);
  return [chosenKey(row),
          stripsOf(chain, [{ symbol: "q_i", word: chain.word, values: q[index] }, { symbol: `k_${key}`, word: row.sources[key], values: k[key] }]),
          stripsOf(chain, [{ symbol: `q_i × k_${key}`, values: products }]), line("numbers.product", { value: fixed(scores[key], 4) })];
}
function scaledNumbers(row) {
  const { scores, scaled, scale } = row, columns = ["word", "score", "scale", "bias", "scaled"].map(name => t(`numbers.${name}`));
  const cells = (score, j) => [keyName(row, j), fixed(score, 4), fixed(scale, 4), withSign(scaled[j] - score * scale, 4), scaledText(row, j)];
  return [numbersTable(t("numbers.scaled"), columns, Array.from(scores, cells))];
}
const scaledText = ({ scaled, isHidden }, j) => isHidden(j) ? t("chain.masked") : fixed(scaled[j], 4);
function weightNumbers(row) {
  const { scaled, weights, isHidden } = row, power = j => isHidden(j) ? 0 : Math.exp(scaled[j]), sum = d3.sum(scaled, (_, j) => power(j));
  const columns = ["word", "scaled", "power", "weight"].map(name => t(`numbers.${name}`));
  const cells = (weight, j) => [keyName(row, j), scaledText(row, j), significant(power(j)), fixed(weight, 4)];
  return [numbersTable(t("numbers.weight"), columns, Array.from(weights, cells)), line("numbers.sum_of_powers", { sum: significant(sum) })];
}
function sumNumbers(chain, { v, mixed }, { weights, sources }) {
  const { index } = chain, heaviest = d3.range(weights.length).filter(j => weights[j]).slice(0, mostCells);
  const parts = heaviest.map(j => ({ symbol: `${fixed(weights[j], 4)} v_${j}`, word: sources[j], values: Array.from(v[j], value => value * weights[j]) }));
  return [stripsOf(chain, [...parts, { symbol: "z_i", word: chain.word, values: mixed[index] }]), valuesLine(chain, "z_i", mixed[index])];
}

const logitText = logit => Number.isFinite(logit) ? fixed(logit, 4) : "−∞";
// How the logit of a choice comes about, where the last step is one product.
function logitNumbers(chain, order, y) {
  const { labels, logits } = chain.document, isMean = chain.kind === "classify", rows = chain.parameter("head.weight") || chain.parameter("embedding.weight");
  const bias = chain.parameter("head.bias") || chain.parameter("output_bias"), values = isMean ? y[0].map((_, i) => d3.mean(y, row => row[i])) : y[chain.index];
  const [best] = order, is = rows && d3.sum(values, (v, i) => v * rows[best][i]) + (bias ? bias[best] : 0), nameOf = i => shownToken(labels[i]);
  const table = numbersTable(t("numbers.logit"), [t("numbers.choice"), t("numbers.logit")], order.map(i => [nameOf(i), logitText(logits[i])]));
  if (!rows || rows.length !== labels.length || Math.abs(is - logits[best]) > 1e-3 * (1 + Math.abs(is))) return [table];
  const input = isMean ? { symbol: "mean(y)", values } : { symbol: "y_i", word: chain.word, values };
  return [...productNumbers(chain, { id: "logits", matrix: "W", input, rows, bias, outputs: logits, choices: order.map(i => [i, nameOf(i)]) }), table];
}
function probabilityNumbers(order, { labels, logits, probabilities }) {
  const most = d3.max(logits), sum = d3.sum(logits, v => Math.exp(v - most)), columns = ["choice", "logit", "power_below", "probability"].map(name => t(`numbers.${name}`));
  const cells = i => [shownToken(labels[i]), logitText(logits[i]), significant(Math.exp(logits[i] - most)), fixed(probabilities[i], 4)];
  return [numbersTable(t("numbers.probability"), columns, order.map(cells)), line("numbers.sum_of_powers", { sum: significant(sum) })];
}
