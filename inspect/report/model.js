// The forward pass of every kind of model, with the names of python/qkv.py.

// A model from a run's "model" in the page and the weights of a checkpoint. `changes` are interventions: { uniform, shuffled,
// withoutPositions: bool, off: id of a component as in `qkv ablate` }.
class Model {
  constructor(view, weights, changes = {}) {
    this.options = view.options.model;
    this.changes = changes;
    const isRounded = typeof weights !== "string", all = isRounded ? sharesOf(weights.values, 16) : new Float32Array(bytesOf(weights).buffer);
    let begin = 0;
    this.parameters = new Map(view.parameters.map(({ path, shape }, i) => {
      const end = begin + shape.reduce((a, b) => a * b, 1), values = all.subarray(begin, end), parameter = { shape, values };
      if (isRounded) for (let j = 0; j < values.length; ++j) values[j] = (2 * values[j] - 1) * weights.largest[i];
      begin = end;
      return [path, parameter];
    }));
    if (changes.shuffled) shuffleQueries(this.parameters);
    this.stacks = ["encoder", "decoder"].filter(stack => this.parameter(`${stack}.layers.0.attention.w_v.weight`) || this.isFree(stack));
    this.attentions = [];  // what attention computed since it was emptied, see `attention`
    this.recorder = null;  // a Map from the paths of core/context.h's Recorder to rows, where they are kept
  }

  // Returns x. A path that is recorded again takes its later place.
  record(path, x) {
    if (this.recorder) {
      this.recorder.delete(path);
      this.recorder.set(path, x);
    }
    return x;
  }

  parameter(path) { return this.parameters.get(path); }
  linear(path, x) { return linear(x, this.parameter(`${path}.weight`), this.parameter(`${path}.bias`)); }
  projected(path, x) { return this.parameter(`${path}.weight`) ? this.linear(path, x) : x; }
  norm(path, x) {
    const weight = this.parameter(`${path}.weight`);
    if (!weight) return x;
    return this.record(`${path}.output`, layerNorm(x, weight, this.parameter(`${path}.bias`), this.options.kind === "bert" ? 1e-12 : 1e-5));
  }
  // The decoder of an encoder-decoder is learned where its encoder is parameter-free.
  isFree(stack) { return this.options.attention === "parameter-free" && this.options.kind.startsWith(stack); }

  row(table, i) {
    const { shape: [, width], values } = this.parameter(table);
    return values.subarray(i * width, (i + 1) * width);
  }
  embedded(ids) { return this.record("static", ids.map(id => this.row("embedding.weight", id))); }
  activated(x) { return this.options.activation === "gelu" ? exactGelu(x) : gelu(x); }
  // The input of the first layer: token types, positions and norm.
  positioned(x, first = 0) {
    const types = this.parameter("token_types.weight");
    const typed = types ? this.record("typed", plus(x, x.map(() => this.row("token_types.weight", 0)))) : x, positions = this.positions(x, first);
    return this.norm("input_norm", positions ? this.record("input", plus(typed, this.record("position", positions))) : typed);
  }
  // Positional encodings like x from position `first` on (Vaswani et al. 2017, 3.5), null where none are added.
  positions(x, first) {
    const { position, kind } = this.options;
    if (this.changes.withoutPositions || !kind.endsWith("coder") && kind !== "bert") return null;
    if (position === "learned") return x.map((_, t) => this.row("positions.weight", first + t));
    if (position !== "sinusoidal") return null;
    return eachRow(x, (y, row, t) => {
      for (let i = 0; i < y.length; ++i) y[i] = (i % 2 ? Math.cos : Math.sin)((first + t) / 10000 ** ((i - i % 2) / row.length));
    });
  }

  // One vector for each token; of an encoder-decoder, the encoder's. `cache`: of a decoder that has read the tokens before.
  contextual(ids, cache) { return this.record("contextual", this.vectors(ids, cache)); }
  vectors(ids, cache) {
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
    return encoded ? this.record("decoded", y) : y;
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
    this.record(`${stack}.input`, x);
    for (let layer = 0; layer < this.options.layers; ++layer) x = this.record(`${stack}.layers.${layer}.output`, this.block(stack, layer, x, inputs));
    return this.record(`${stack}.output`, this.norm(`${stack}.norm`, x));
  }
  block(stack, layer, x, inputs) {
    const path = `${stack}.layers.${layer}`, attend = (h, source, cross) => this.attention({ stack, layer, cross }, h, source, inputs);
    if (this.isFree(stack)) return attend(x, x, false);
    x = this.withResidual(x, `${path}.norm_1`, h => attend(h, h, false));
    if (inputs.encoded) x = this.withResidual(this.record(`${path}.attended`, x), `${path}.norm_cross`, h => attend(h, inputs.encoded, true));
    if (!this.parameter(`${path}.feed_forward.w_1.weight`) || this.changes.off === this.componentId(stack, layer, "ff")) return x;
    this.record(`${path}.${inputs.encoded ? "cross_attended" : "attended"}`, x);
    return this.withResidual(x, `${path}.norm_2`, h => this.record(`${path}.feed_forward.output`, this.feedForward(`${path}.feed_forward`, h)));
  }
  withResidual(x, norm, sublayer) {
    return this.options.norm === "post" ? this.norm(norm, plus(x, sublayer(x))) : plus(x, sublayer(this.norm(norm, x)));
  }
  feedForward(path, x) { return this.linear(`${path}.w_2`, this.activated(this.linear(`${path}.w_1`, x))); }

  // softmax(q k^T / sqrt(d_k)) v by head, between projections that the kind of attention has or has not. Notes the scale and q, k,
  // v, scaled scores and weights of each head; rows of these two have the keys that are visible to a query.
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
      const scaled = q[head].map((row, t) => {
        const found = new Float32Array(causal && !cross ? first + t + 1 : keys.length);
        for (let j = 0; j < found.length; ++j) found[j] = dot(row, keys[j]) * scale + biasOf(head, j - first - t);
        return found;
      });
      const weights = scaled.map(softmax);
      steps.push({ q: q[head], k: keys, v: vectors, scaled, weights, bias: (t, j) => biasOf(head, j - first - t) });
      if (changes.off === this.componentId(stack, layer, `${cross ? "cross." : ""}${head}`)) continue;
      weights.forEach((row, t) => {
        const to = partOf(mixed[t], head, heads);
        for (let j = 0; j < row.length; ++j) for (let i = 0; i < headWidth; ++i) to[i] += row[j] * vectors[j][i];
      });
    }
    this.attentions.push({ stack, layer, cross, scale, heads: steps });
    if (this.recorder) for (const name of ["q", "k", "v"]) this.record(`${path}.${name}`, steps[0][name].map((_, t) => Float32Array.from(steps.flatMap(step => [...step[name][t]]))));
    return this.record(`${path}.output`, this.projected(`${path}.w_o`, this.record(`${path}.mixed`, mixed)));
  }
  // "0.1", "0.ff"; where there are two stacks, "decoder.0.cross.1": as in `qkv ablate`.
  componentId(stack, layer, part) { return `${this.stacks.length > 1 ? `${stack}.` : ""}${layer}.${part}`; }
  // Ids of heads and feed-forward blocks in the order of computing.
  get components() {
    const { heads, layers } = this.options;
    return this.stacks.flatMap(stack => d3.range(layers).flatMap(layer => {
      const has = part => this.parameter(`${stack}.layers.${layer}.${part}.weight`), all = d3.range(this.isFree(stack) ? 1 : heads);
      const parts = [...all, ...(has("cross_attention.w_v") ? all.map(head => `cross.${head}`) : []), ...(has("feed_forward.w_1") ? ["ff"] : [])];
      return parts.map(part => this.componentId(stack, layer, part));
    }));
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
