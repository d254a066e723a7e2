// The forward pass of every kind of model in plain JavaScript, with the names of python/qkv.py. A sequence is an array of
// rows, one Float32Array [width] for each token.

const zeros = (count, width) => Array.from({ length: count }, () => new Float32Array(width));
// Loops, since callbacks for each element take several times as long.
const eachRow = (x, fill) => x.map((row, t) => {
  const y = new Float32Array(row.length);
  fill(y, row, t);
  return y;
});
const plus = (a, b) => eachRow(a, (y, row, t) => {
  const other = b[t];
  for (let i = 0; i < y.length; ++i) y[i] = row[i] + other[i];
});

// Of `b` and as many elements of `a` from `first` on. In four sums, since the additions of one wait for each other.
function dot(a, b, first = 0) {
  const { length } = b, whole = length - length % 4;
  let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (let i = 0; i < whole; i += 4) {
    s0 += a[first + i] * b[i];
    s1 += a[first + i + 1] * b[i + 1];
    s2 += a[first + i + 2] * b[i + 2];
    s3 += a[first + i + 3] * b[i + 3];
  }
  for (let i = whole; i < length; ++i) s0 += a[first + i] * b[i];
  return s0 + s1 + s2 + s3;
}

// x W^T + b for a weight [out, in].
function linear(x, { shape: [outputs, inputs], values }, bias) {
  return x.map(row => {
    const y = new Float32Array(outputs);
    for (let o = 0; o < outputs; ++o) y[o] = dot(values, row, o * inputs) + (bias ? bias.values[o] : 0);
    return y;
  });
}

function softmax(scores) {
  const weights = new Float32Array(scores.length);
  let most = -Infinity, sum = 0;
  for (let i = 0; i < scores.length; ++i) most = Math.max(most, scores[i]);
  for (let i = 0; i < scores.length; ++i) sum += weights[i] = Math.exp(scores[i] - most);
  for (let i = 0; i < scores.length; ++i) weights[i] /= sum;
  return weights;
}

function layerNorm(x, weight, bias, epsilon) {
  return eachRow(x, (y, row) => {
    let mean = 0, variance = 0;
    for (let i = 0; i < row.length; ++i) mean += row[i] / row.length;
    for (let i = 0; i < row.length; ++i) variance += (row[i] - mean) * (row[i] - mean) / row.length;
    const scale = 1 / Math.sqrt(variance + epsilon), gain = weight.values, shift = bias && bias.values;
    for (let i = 0; i < row.length; ++i) y[i] = (row[i] - mean) * scale * gain[i] + (shift ? shift[i] : 0);
  });
}

const gelu = x => eachRow(x, (y, row) => {
  for (let i = 0; i < y.length; ++i) y[i] = 0.5 * row[i] * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (row[i] + 0.044715 * row[i] * row[i] * row[i])));
});
// erf by its Taylor series, or near 1 by the continued fraction of erfc.
function erf(x) {
  const a = Math.abs(x);
  let y;
  if (a < 2.5) {
    y = 0;
    for (let n = 0, term = a; n < 60; ++n, term *= -a * a / n) y += term / (2 * n + 1);
    y *= 2 / Math.sqrt(Math.PI);
  } else {
    let tail = 0;
    for (let n = 40; n > 0; --n) tail = n / 2 / (a + tail);
    y = 1 - Math.exp(-a * a) / Math.sqrt(Math.PI) / (a + tail);
  }
  return x < 0 ? -y : y;
}
const exactGelu = x => eachRow(x, (y, row) => {
  for (let i = 0; i < y.length; ++i) y[i] = 0.5 * row[i] * (1 + erf(row[i] / Math.SQRT2));
});
const sigmoid = v => 1 / (1 + Math.exp(-v));

// Elements i and i + half of a head are a complex number, rotated by position / 10000^(i / half).
function rotated(row, position) {
  const half = row.length / 2, y = new Float32Array(row.length);
  for (let i = 0; i < half; ++i) {
    const angle = position / 10000 ** (i / half), cos = Math.cos(angle), sin = Math.sin(angle);
    y[i] = row[i] * cos - row[i + half] * sin;
    y[i + half] = row[i + half] * cos + row[i] * sin;
  }
  return y;
}

// A row's part of a head among `heads`.
const partOf = (row, head, heads) => row.subarray(head * row.length / heads, (head + 1) * row.length / heads);

// What each recurrent cell makes of its gates from the input `a` and from the state `b`, its hidden state h and its cell c.
const cells = {
  rnn: ({ a, b }) => ({ h: a.map((v, i) => Math.tanh(v + b[i])) }),
  gru: ({ a, b, h, n }) => ({
    h: h.map((before, i) => {
      const reset = sigmoid(a[i] + b[i]), update = sigmoid(a[n + i] + b[n + i]);
      return (1 - update) * Math.tanh(a[2 * n + i] + reset * b[2 * n + i]) + update * before;
    }),
  }),
  lstm: ({ a, b, c, n }) => {
    const gate = (k, i) => a[k * n + i] + b[k * n + i];
    const cell = c.map((before, i) => sigmoid(gate(1, i)) * before + sigmoid(gate(0, i)) * Math.tanh(gate(2, i)));
    return { h: cell.map((v, i) => sigmoid(gate(3, i)) * Math.tanh(v)), c: cell };
  },
};

// A model from a run's "model" in the page and the base64 of a checkpoint. `changes` are interventions: { uniform, shuffled,
// withoutPositions: bool, off: id of a component as in `qkv ablate` }.
class Model {
  constructor(view, weights, changes = {}) {
    this.options = view.options.model;
    this.changes = changes;
    const values = new Float32Array(bytesOf(weights).buffer);
    let begin = 0;
    this.parameters = new Map(view.parameters.map(({ path, shape }) => {
      const end = begin + shape.reduce((a, b) => a * b, 1), parameter = { shape, values: values.subarray(begin, end) };
      begin = end;
      return [path, parameter];
    }));
    if (changes.shuffled) shuffleQueries(this.parameters);
    this.stacks = ["encoder", "decoder"].filter(stack => this.parameter(`${stack}.layers.0.attention.w_v.weight`) || this.isFree(stack));
    this.attentions = [];  // what attention computed since it was emptied, see `attention`
  }

  parameter(path) { return this.parameters.get(path); }
  linear(path, x) { return linear(x, this.parameter(`${path}.weight`), this.parameter(`${path}.bias`)); }
  projected(path, x) { return this.parameter(`${path}.weight`) ? this.linear(path, x) : x; }
  norm(path, x) {
    const weight = this.parameter(`${path}.weight`);
    return weight ? layerNorm(x, weight, this.parameter(`${path}.bias`), this.options.kind === "bert" ? 1e-12 : 1e-5) : x;
  }
  // The decoder of an encoder-decoder is learned where its encoder is parameter-free.
  isFree(stack) { return this.options.attention === "parameter-free" && this.options.kind.startsWith(stack); }

  row(table, i) {
    const { shape: [, width], values } = this.parameter(table);
    return values.subarray(i * width, (i + 1) * width);
  }
  embedded(ids) { return ids.map(id => this.row("embedding.weight", id)); }
  activated(x) { return this.options.activation === "gelu" ? exactGelu(x) : gelu(x); }
  // The input of the first layer: token types, positions and norm.
  positioned(x, first = 0) {
    const types = this.parameter("token_types.weight");
    return this.norm("input_norm", this.withPositions(types ? plus(x, x.map(() => this.row("token_types.weight", 0))) : x, first));
  }
  // Positional encodings are added from position `first` on (Vaswani et al. 2017, 3.5).
  withPositions(x, first) {
    const { position, kind } = this.options;
    if (this.changes.withoutPositions || !kind.endsWith("coder") && kind !== "bert") return x;
    if (position === "learned") return plus(x, x.map((_, t) => this.row("positions.weight", first + t)));
    if (position !== "sinusoidal") return x;
    return x.map((row, t) => row.map((v, i) => {
      const angle = (first + t) / 10000 ** ((i - i % 2) / row.length);
      return v + (i % 2 ? Math.cos(angle) : Math.sin(angle));
    }));
  }

  // One vector for each token; of an encoder-decoder, the encoder's. `cache`: of a decoder that has read the tokens before.
  contextual(ids, cache) {
    let x = this.embedded(ids);
    const { kind } = this.options;
    if (kind === "encoder" || kind === "bert" || kind === "encoder-decoder") return this.transformer("encoder", this.positioned(x), {});
    if (kind === "decoder") return this.decode(ids, undefined, cache);
    if (kind === "recurrent") return this.recurrent(x);
    if (kind === "convolution") for (let i = 0; i < this.options.layers; ++i) x = this.convolution(`convolution.layers.${i}`, x);
    if (kind === "feed-forward") return this.fixedLength(x);
    return x;
  }
  // One vector for each output token, given the encoder's output.
  decode(ids, encoded, cache) {
    const first = cache ? cache.length : 0;
    const y = this.transformer("decoder", this.positioned(this.embedded(ids), first), { causal: true, encoded, cache });
    if (cache) cache.length += ids.length;
    return y;
  }
  // One vector for a sequence from those of its tokens.
  sentence(x) {
    const { kind, bidirectional } = this.options, last = x[x.length - 1];
    if (kind === "convolution") return last.map((_, i) => x.reduce((most, row) => Math.max(most, row[i]), -Infinity));
    if (kind === "recurrent") return bidirectional ? last.map((v, i) => i < last.length / 2 ? v : x[0][i]) : last;
    if (this.parameter("pooler.weight")) return this.linear("pooler", [x[0]])[0].map(Math.tanh);
    return last.map((_, i) => x.reduce((sum, row) => sum + row[i], 0) / x.length);
  }
  logits(row) {
    let y = [row];
    if (this.parameter("output_transform.linear.weight"))
      y = this.norm("output_transform.norm", this.activated(this.linear("output_transform.linear", y)));
    if (this.parameter("head.weight")) return this.linear("head", y)[0];
    return linear(y, this.parameter("embedding.weight"), this.parameter("output_bias"))[0];
  }

  transformer(stack, x, inputs) {
    for (let layer = 0; layer < this.options.layers; ++layer) x = this.block(stack, layer, x, inputs);
    return this.norm(`${stack}.norm`, x);
  }
  block(stack, layer, x, inputs) {
    const path = `${stack}.layers.${layer}`, attend = (h, source, cross) => this.attention({ stack, layer, cross }, h, source, inputs);
    if (this.isFree(stack)) return attend(x, x, false);
    x = this.withResidual(x, `${path}.norm_1`, h => attend(h, h, false));
    if (inputs.encoded) x = this.withResidual(x, `${path}.norm_cross`, h => attend(h, inputs.encoded, true));
    return this.parameter(`${path}.feed_forward.w_1.weight`) && this.changes.off !== this.componentId(stack, layer, "ff")
      ? this.withResidual(x, `${path}.norm_2`, h => this.feedForward(`${path}.feed_forward`, h)) : x;
  }
  withResidual(x, norm, sublayer) {
    return this.options.norm === "post" ? this.norm(norm, plus(x, sublayer(x))) : plus(x, sublayer(this.norm(norm, x)));
  }
  feedForward(path, x) { return this.linear(`${path}.w_2`, this.activated(this.linear(`${path}.w_1`, x))); }

  // softmax(q k^T / sqrt(d_k)) v by head, between projections that the kind of attention has or has not. Notes q, k, scale,
  // scores and weights of each head; their rows have the keys that a query may see.
  attention({ stack, layer, cross }, query, source, { causal, cache }) {
    const path = `${stack}.layers.${layer}.${cross ? "cross_attention" : "attention"}`, { options, changes } = this;
    const heads = this.isFree(stack) ? 1 : options.heads, width = query[0].length, headWidth = width / heads;
    const uniform = options.attention === "uniform" || changes.uniform, scale = uniform ? 0 : options.scale ? headWidth ** -0.5 : 1;
    const first = cache && !cross ? cache.length : 0;
    const rotates = options.position === "rotary" && !cross && !changes.withoutPositions;
    // [head][position]; heads of queries share those of keys and values where these are fewer.
    const split = (x, rotate) => {
      const groups = x[0].length / headWidth;
      return d3.range(groups).map(g => x.map((row, t) => {
        const part = partOf(row, g, groups);
        return rotate ? rotated(part, first + t) : part;
      }));
    };
    const ofHead = (parts, head) => parts[Math.floor(head * parts.length / heads)];
    const keysValues = () => ({ k: split(this.projected(`${path}.w_k`, source), rotates), v: split(this.projected(`${path}.w_v`, source)) });
    const q = split(this.projected(`${path}.w_q`, query), rotates), { k, v } = cached(cache, path, cross, keysValues);
    const table = uniform || changes.withoutPositions ? null : this.parameter(`${path}.positions.weight`);
    const biasOf = (head, distance) => {
      const longest = options.max_distance;
      return table ? table.values[(Math.max(-longest, Math.min(longest, distance)) + longest) * heads + head] : 0;
    };
    const mixed = zeros(query.length, width), steps = [];
    for (let head = 0; head < heads; ++head) {
      const keys = ofHead(k, head), vectors = ofHead(v, head);
      const scores = q[head].map((row, t) => {
        const found = new Float32Array(causal && !cross ? first + t + 1 : keys.length);
        for (let j = 0; j < found.length; ++j) found[j] = dot(row, keys[j]) * scale + biasOf(head, j - first - t);
        return found;
      });
      const weights = scores.map(softmax);
      steps.push({ q: q[head], k: keys, scores, weights });
      if (changes.off === this.componentId(stack, layer, `${cross ? "cross." : ""}${head}`)) continue;
      weights.forEach((row, t) => {
        const to = partOf(mixed[t], head, heads);
        for (let j = 0; j < row.length; ++j) for (let i = 0; i < headWidth; ++i) to[i] += row[j] * vectors[j][i];
      });
    }
    this.attentions.push({ stack, layer, cross, scale, heads: steps });
    return this.projected(`${path}.w_o`, mixed);
  }
  // "0.1", "0.ff"; where there are two stacks, "decoder.0.cross.1": as in `qkv ablate`.
  componentId(stack, layer, part) { return `${this.stacks.length > 1 ? `${stack}.` : ""}${layer}.${part}`; }
  // Heads and feed-forward blocks in the order of computing: { id, row, column } and of a head { map, layer, head }.
  get components() {
    const found = [], { heads, layers } = this.options;
    for (const stack of this.stacks)
      for (let layer = 0; layer < layers; ++layer) {
        const row = `${this.stacks.length > 1 ? `${stack}, ` : ""}layer ${layer}`, has = part => this.parameter(`${stack}.layers.${layer}.${part}.weight`);
        const add = (part, column, more) => found.push({ id: this.componentId(stack, layer, part), row, column, ...more });
        const addHeads = (prefix, title, map) => d3.range(this.isFree(stack) ? 1 : heads).forEach(head => add(`${prefix}${head}`, `${title} ${head}`, { map, layer, head }));
        addHeads("", "head", stack === "decoder" && this.stacks.length > 1 ? "decoder" : "self");
        if (has("cross_attention.w_v")) addHeads("cross.", "cross", "cross");
        if (has("feed_forward.w_1")) add("ff", "feed-forward");
      }
    return found;
  }

  recurrent(x) {
    const { cell, layers, bidirectional } = this.options;
    for (let layer = 0; layer < layers; ++layer) {
      const forth = this.states(cell, `_l${layer}`, x);
      const back = bidirectional ? this.states(cell, `_l${layer}_reverse`, [...x].reverse()).reverse() : null;
      x = back ? forth.map((row, t) => Float32Array.from([...row, ...back[t]])) : forth;
    }
    return x;
  }
  states(cell, suffix, x) {
    const [w_ih, w_hh, b_ih, b_hh] = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(name => this.parameter(`recurrent.${name}${suffix}`));
    const n = w_hh.shape[1];
    let state = { h: new Float32Array(n), c: new Float32Array(n) };
    return linear(x, w_ih, b_ih).map(a => (state = cells[cell]({ a, b: linear([state.h], w_hh, b_hh)[0], n, ...state })).h);
  }

  // Convolutions over 3, 4 and 5 tokens side by side, each with relu (Kim 2014).
  convolution(path, x) {
    const y = zeros(x.length, this.options.width);
    for (let kernel = 0, begin = 0; kernel < 3; ++kernel) {
      const { shape: [outputs, inputs, size], values } = this.parameter(`${path}.kernels.${kernel}.weight`);
      const bias = this.parameter(`${path}.kernels.${kernel}.bias`).values, before = Math.floor((size - 1) / 2);
      for (let t = 0; t < x.length; ++t)
        for (let o = 0; o < outputs; ++o) {
          let sum = bias[o];
          for (let j = 0; j < size; ++j) {
            const row = x[t - before + j];
            if (row) for (let i = 0; i < inputs; ++i) sum += values[(o * inputs + i) * size + j] * row[i];
          }
          y[t][begin + o] = Math.max(sum, 0);
        }
      begin += outputs;
    }
    return y;
  }

  // One hidden layer over all positions, the last of them padding.
  fixedLength(x) {
    const { max_length, width } = this.options, flat = new Float32Array(max_length * width);
    x.forEach((row, t) => flat.set(row, t * width));
    const [y] = this.feedForward("feed_forward", [flat]);
    return x.map((_, t) => y.subarray(t * width, (t + 1) * width));
  }
}

// Keys and values of all that was read, where there is a cache; those of cross-attention stay the same.
function cached(cache, path, cross, compute) {
  if (!cache) return compute();
  const before = cache[path];
  if (before && cross) return before;
  const now = compute();
  if (!before) return cache[path] = now;
  for (const name of ["k", "v"]) now[name].forEach((rows, head) => before[name][head].push(...rows));
  return before;
}

// Intervention::shuffled_queries: the elements of each W_q in the random order that the program gives them.
function shuffleQueries(parameters) {
  let stream = 0;
  for (const [path, { shape, values }] of parameters)
    if (path.endsWith(".w_q.weight"))
      parameters.set(path, { shape, values: Float32Array.from(permutation(values.length, ++stream), i => values[i]) });
}

// Random(0, Purpose::testing).permutation of one of its streams (core/random.cpp).
function permutation(size, stream) {
  const order = d3.range(size), testing = 4;
  let block = -1, bits;
  for (let i = size; i > 1; --i) {
    if (block !== i >> 2) bits = philox([block = i >> 2, 0, 0, (testing << 24 | stream) >>> 0]);
    const j = Math.floor(bits[i & 3] / 2 ** 32 * i);
    [order[i - 1], order[j]] = [order[j], order[i - 1]];
  }
  return order;
}

// Philox4x32-10 with the key 0 (Salmon et al. 2011).
function philox(counter) {
  const high = (a, b) => Number(BigInt(a) * BigInt(b) >> 32n), low = (a, b) => Math.imul(a, b) >>> 0;
  let [a, b, c, d] = counter;
  for (let round = 0, x = 0, y = 0; round < 10; ++round, x = x + 0x9E3779B9 >>> 0, y = y + 0xBB67AE85 >>> 0)
    [a, b, c, d] = [(high(0xCD9E8D57, c) ^ b ^ x) >>> 0, low(0xCD9E8D57, c), (high(0xD2511F53, a) ^ d ^ y) >>> 0, low(0xD2511F53, a)];
  return [a, b, c, d];
}
