// Operations of the forward pass in plain JavaScript. A sequence is an array of rows, one Float32Array [width] for each token.

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
