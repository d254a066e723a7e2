// Attention: the words of a sentence, a heat map of a head, and a slider over the checkpoints.

const mostCells = 64;  // words up to which each cell is an element; beyond, a canvas draws them

const sentence = () => run().sentences[state.sentence];
const attention = () => run().attention && run().attention.sentences[state.sentence];
const decoded = new Map();

// All weights of the sentence at the chosen checkpoint: [layer, head, query, key] in one row.
function weightsNow() {
  const view = run().attention, { weights, bits } = attention();
  let at = 0;  // the latest kept checkpoint that is not after the chosen one
  view.stops.forEach((stop, i) => { if (stop <= state.stop) at = i; });
  const key = `${state.run} ${state.sentence} ${at}`;
  if (!decoded.has(key)) decoded.set(key, sharesOf(weights[at], bits));
  return decoded.get(key);
}

// [query * T + key] of the chosen head, or of the mean of all.
function headWeights(head = state.head) {
  const time = sentence().tokens.length, { heads } = attention(), all = weightsNow(), size = time * time;
  const start = state.layer * heads * size;
  if (head !== "mean") return all.subarray(start + head * size, start + (head + 1) * size);
  const mean = new Float32Array(size);
  for (let h = 0; h < heads; ++h) for (let i = 0; i < size; ++i) mean[i] += all[start + h * size + i] / heads;
  return mean;
}

const headName = () => `layer ${state.layer}, ${state.head === "mean" ? "mean of heads" : `head ${state.head}`}`;
const checkpointName = checkpoint => `Step ${count(checkpoint.step)}${checkpoint.note ? ` · ${checkpoint.note}` : ""}`;

function drawCells(svg, weights, tokens, x0, y0, cell, shade) {
  const time = tokens.length;
  svg.append("g").selectAll("rect").data(d3.range(time * time)).join("rect")
    .attr("x", i => x0 + (i % time) * cell).attr("y", i => y0 + Math.floor(i / time) * cell)
    .attr("width", cell - 1).attr("height", cell - 1).attr("rx", Math.min(3, cell / 8)).attr("fill", i => shade(weights[i]))
    .append("title").text(i => `${tokens[Math.floor(i / time)]} attends to ${tokens[i % time]} with ${percent(weights[i])}`);
  if (cell < 34) return;
  svg.append("g").attr("text-anchor", "middle").attr("font-size", Math.min(13, cell / 3.2)).selectAll("text").data(d3.range(time * time)).join("text")
    .attr("x", i => x0 + (i % time + 0.5) * cell).attr("y", i => y0 + (Math.floor(i / time) + 0.5) * cell).attr("dy", "0.35em")
    .attr("fill", i => inkOn(shade(weights[i]))).text(i => weights[i].toFixed(2).replace(/^0/, ""));
}

// One pixel a cell, as an image inside the figure. Small weights would vanish among hundreds of
// words, so the scale is relative to the largest.
function drawPixels(svg, weights, time, x0, y0, size, shade) {
  const canvas = make("canvas", { width: time, height: time }), context = canvas.getContext("2d");
  const image = context.createImageData(time, time), most = d3.max(weights) || 1;
  const table = d3.range(256).map(v => d3.rgb(shade(v / 255)));
  for (let i = 0; i < weights.length; ++i) {
    const colour = table[Math.round(Math.sqrt(weights[i] / most) * 255)];
    image.data.set([colour.r, colour.g, colour.b, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
  svg.append("image").attr("x", x0).attr("y", y0).attr("width", size).attr("height", size).attr("preserveAspectRatio", "none")
    .attr("style", "image-rendering:pixelated").attr("href", canvas.toDataURL());
}

function drawAttention(svg, width) {
  const ink = colours(), { tokens } = sentence(), time = tokens.length, weights = headWeights(), pixels = time > mostCells;
  const shown = d3.range(time).filter(i => i % Math.ceil(time / 32) === 0);
  const longest = Math.min(d3.max(tokens, token => token.length), 14), label = 14 + longest * 7.2;
  const room = width - label - 24, cell = pixels ? Math.min(room, 720) / time : Math.max(Math.min(room / time, 64), 15);
  const size = cell * time, left = label + Math.max(0, (width - label - size) / 2 - label / 3), top = label;
  const short = token => token.length > 14 ? token.slice(0, 13) + "…" : token;
  if (pixels) drawPixels(svg, weights, time, left, top, size, ink.shade);
  else drawCells(svg, weights, tokens, left, top, cell, ink.shade);
  const names = svg.append("g").attr("font-size", Math.max(Math.min(14, cell * 0.8), pixels ? 11 : 10));
  const bold = i => i === state.word ? 700 : 400, tint = i => i === state.word ? ink.ink : ink.soft;
  names.append("g").attr("text-anchor", "end").selectAll("text").data(shown).join("text").attr("x", left - 8)
    .attr("y", i => top + (i + 0.5) * cell).attr("dy", "0.35em").attr("font-weight", bold).attr("fill", tint).text(i => short(tokens[i]));
  names.append("g").selectAll("text").data(shown).join("text")
    .attr("transform", i => `translate(${left + (i + 0.5) * cell},${top - 8}) rotate(-60)`).attr("dy", "0.35em").attr("fill", ink.soft)
    .text(i => short(tokens[i]));
  svg.append("rect").attr("x", left - 1.5).attr("y", top + state.word * cell - 1.5).attr("width", size + 2).attr("height", Math.max(cell, 3) + 2)
    .attr("rx", 4).attr("fill", "none").attr("stroke", ink.ink).attr("stroke-width", 1.5);
  svg.on("click", function () {
    const row = Math.floor((d3.mouse(this)[1] - top) / cell);
    if (row >= 0 && row < time) choose({ word: row });
  });
  return { height: top + size + 14, width: Math.max(width, left + size + 24), file: `attention ${headName()} step ${run().stops[state.stop].step}`,
    title: `Attention, ${headName()}, ${checkpointName(run().stops[state.stop]).toLowerCase()}`, description: reading(weights) };
}

// "bank attends to money (63 %), grows (20 %)."
function reading(weights) {
  const { tokens } = sentence(), time = tokens.length, row = weights.subarray(state.word * time, (state.word + 1) * time);
  const order = d3.range(time).sort((a, b) => row[b] - row[a]).slice(0, 4);
  return `“${tokens[state.word]}” attends to ${order.map(i => `${tokens[i]} (${percent(row[i])})`).join(", ")}.`;
}

function showTokens() {
  const { tokens } = sentence(), weights = headWeights(), time = tokens.length, ink = colours();
  const row = weights.subarray(state.word * time, (state.word + 1) * time), most = time > mostCells ? d3.max(row) : 1;
  const box = $("tokens");
  if (box.childElementCount !== time || box.dataset.key !== `${state.run} ${state.sentence}`) {
    box.dataset.key = `${state.run} ${state.sentence}`;
    box.replaceChildren(...tokens.map((token, i) => {
      const button = make("button", { type: "button" }, token);
      button.addEventListener("click", () => choose({ word: i }));
      return button;
    }));
  }
  [...box.children].forEach((button, i) => {
    const colour = ink.shade(most ? row[i] / most : 0);
    button.style.background = colour;
    button.style.color = inkOn(colour);
    button.setAttribute("aria-pressed", i === state.word);
    button.title = percent(row[i]);
  });
  $("reading").textContent = reading(weights);
}

function attentionControls() {
  const view = attention(), title = s => `${s.label ? `${s.label}: ` : ""}${s.tokens.join(" ")}`.slice(0, 120);
  const parts = [];
  if (run().sentences.length)
    parts.push(menu("sentence", "Sentence", run().sentences.map((s, i) => [i, title(s)]), state.sentence,
      i => choose({ sentence: i, word: Math.max(run().sentences[i].index, 0) }), true));
  if (view) {
    parts.push(segments("layer", "Layer", d3.range(view.layers).map(l => [l, String(l)]), state.layer, layer => choose({ layer })));
    const heads = d3.range(view.heads).map(h => [h, String(h)]);
    if (view.heads > 1) heads.unshift(["mean", "Mean"]);
    parts.push(segments("head", "Head", heads, state.head, head => choose({ head })));
  }
  $("attention-controls").replaceChildren(...parts);
}

// Playing shows one checkpoint after the other, up to the last one, a pause or a hand on the slider.
let timer = null;

function pause() {
  clearInterval(timer);
  timer = null;
  if ($("play")) $("play").textContent = "Play";
}

function play() {
  const last = run().stops.length - 1;
  $("play").textContent = "Pause";
  if (state.stop === last) choose({ stop: 0 });
  timer = setInterval(() => {
    choose({ stop: state.stop + 1 });
    if (state.stop === last) pause();
  }, 450);
}

function timeControl() {
  pause();
  const stops = run().stops;
  const range = make("input", { type: "range", id: "stop", min: 0, max: stops.length - 1, step: 1, value: state.stop, "aria-label": "Checkpoint" });
  range.addEventListener("pointerdown", pause);
  range.addEventListener("input", () => { pause(); choose({ stop: Number(range.value) }); });
  const button = make("button", { type: "button", class: "quiet", id: "play" }, "Play");
  button.addEventListener("click", () => timer === null ? play() : pause());
  $("time").replaceChildren(button, make("label", {}, range), make("output", { for: "stop", id: "stop-name" }));
  $("time").hidden = stops.length < 2;
}

// The slider and its name follow what is chosen, by whatever means.
function showTime() {
  const name = checkpointName(run().stops[state.stop]);
  $("stop").value = state.stop;
  $("stop").setAttribute("aria-valuetext", name);
  $("stop-name").textContent = name;
}
