// The panel: a text that the reader types, what models answer to it, and interventions that break them. One pane for each of
// two models.

const writtenTokens = 80;  // that a language model writes on
const mostChoices = 10;
const models = new Map(), tasks = new Map();

const memo = (cache, key, compute) => {
  if (!cache.has(key)) cache.set(key, compute());
  return cache.get(key);
};

// The checkpoint of a run that is chosen.
const stopOf = r => r === state.run ? state.stop : stopLike(r, run().stops[state.stop]);
// The one whose weights compute: the nearest in the page; undefined where the model is not in it.
function checkpointOf(r) {
  const { stops, model } = data.runs[r], chosen = stops[stopOf(r)].step, distance = i => Math.abs(stops[i].step - chosen);
  return Object.keys(model.weights || {}).map(Number).sort((a, b) => distance(a) - distance(b))[0];
}
// Whether the model of a run is in the page; of no other run beside it, no.
const isInPage = r => r !== null && checkpointOf(r) !== undefined;
const isBroken = () => Object.values(state.changes).some(Boolean);
const taskOf = r => memo(tasks, r, () => new Task(data.runs[r].model));

// What a run makes of the text: { task, model, sentence, embedded, x, attentions, translation, maps } or { error }; null where the model is
// not in the page.
const latest = new Map();
function liveOf(r) {
  const checkpoint = checkpointOf(r);
  if (checkpoint === undefined) return null;
  const key = JSON.stringify([checkpoint, state.text, state.changes]);
  if (!latest.has(r) || latest.get(r).key !== key) latest.set(r, { key, ...answered(r, checkpoint) });
  return latest.get(r);
}
function answered(r, checkpoint) {
  const view = data.runs[r].model, task = taskOf(r);
  try {
    const sentence = task.read(state.text);
    const model = memo(models, `${r} ${checkpoint} ${JSON.stringify(state.changes)}`, () => new Model(view, view.weights[checkpoint], state.changes));
    model.attentions = [];
    const x = model.contextual(sentence.ids), attentions = model.attentions;
    const translation = task.kind === "translate" ? new Translation(task, model, x) : null;
    return writtenOn({ task, model, sentence, embedded: model.embedded(sentence.ids), x, attentions, translation });
  } catch (error) {
    if (error instanceof Refusal) return { error: error.message };
    throw error;
  }
}

// With more of its translation, and maps of the attention so far.
function writtenOn(live) {
  const { translation } = live;
  if (translation) translation.writeUntil(performance.now() + slice);
  live.maps = mapsFrom(live.attentions.concat(translation ? translation.attentions : []), live.sentence.words, translation);
  return live;
}
const isWriting = live => Boolean(live && live.translation && !live.translation.isWhole);

function mapsFrom(attentions, words, translation) {
  const map = (key, title, chosen, rows, columns) => {
    const modules = attentions.filter(chosen), steps = (layer, head) => ({ ...modules[layer].heads[head], scale: modules[layer].scale });
    const weights = (layer, head) => {
      const all = new Float32Array(rows.length * columns.length);
      modules[layer].heads[head].weights.forEach((row, t) => all.set(row, t * columns.length));
      return all;
    };
    return modules.length && { key, title, rows, columns, layers: modules.length, heads: modules[0].heads.length, steps, weights };
  };
  if (!translation) return [map("self", "Attention", () => true, words, words)].filter(Boolean);
  const { inputs, outputs } = translation;
  return [map("cross", "Cross-attention", a => a.cross, outputs, words), map("self", "Encoder", a => a.stack === "encoder", words, words),
          map("decoder", "Decoder", a => a.stack === "decoder" && !a.cross, inputs, inputs)].filter(Boolean);
}

// The maps of a run: computed where the chosen checkpoint is in the page or the model is broken, else as the program recorded.
function mapsOf(r) {
  const live = liveOf(r), stored = storedMap(r);
  if (stored && !isBroken() && checkpointOf(r) !== stopOf(r)) return [stored];
  return live && live.maps || [];
}
const mapOf = r => mapsOf(r).find(map => map.key === state.map) || mapsOf(r)[0];

// Answers about the task's words and, where it answers about words, the chosen one.
function answersOf({ task, model, sentence, x }) {
  if (["translate", "static-embedding"].includes(task.kind)) return [];
  const asked = task.kind === "classify" ? [0] : [...sentence.targets], word = Math.min(state.word, x.length - 1);
  if (task.isAboutWords && !asked.includes(word) && !(task.kind === "coreference" && x.length < 2)) asked.push(word);
  return asked.map(index => task.answer(model, sentence, x, index));
}

// The head without which the answer changes most.
function busiestHead(r) {
  const live = liveOf(r), map = mapOf(r);
  if (!map || map.heads === 1 && map.layers === 1) return { layer: 0, head: 0 };
  if (!live || !live.maps || map.key !== "self" || !answersOf(live).length) return { layer: map.layers - 1, head: map.heads > 1 ? "mean" : 0 };
  const heads = finished(ablation(r, askedOf(r))).changes.filter(({ component }) => component.map === "self");
  const { layer, head } = heads[argmax(heads, head => Math.abs(head.change))].component;
  return { layer, head };
}

// The chosen word's vectors, or the means of all, for the maps of embeddings; null where the checkpoint is not in the page.
function typedVectors(r) {
  const live = liveOf(r);
  if (!live || live.error || checkpointOf(r) !== stopOf(r)) return null;
  const whole = data.runs[r].points.every(point => point.index < 0), word = Math.min(state.word, live.x.length - 1);
  const vector = rows => whole ? rows[0].map((_, i) => d3.mean(rows, row => row[i])) : rows[word];
  return { name: whole ? "your text" : shownToken(live.sentence.words[word]), before: vector(live.embedded), after: vector(live.x) };
}

// What must be said about a run's answer.
function notesOf(r) {
  const live = liveOf(r), { stops } = data.runs[r], checkpoint = checkpointOf(r);
  if (!live)
    return [(data.runs[r].model.reads_texts ? "The weights of this model are too large for the page" : "The page cannot cut a text into the tokens of an imported model") +
      ": it shows only what the program recorded of the sentences in the menu."];
  if (live.error) return [live.error];
  const notes = [], unknownWords = live.sentence.words.filter((_, i) => live.task.isUnknown(live.sentence, i));
  const refusal = live.task.refusal(live.sentence);
  if (refusal) notes.push(refusal);
  if (unknownWords.length) notes.push(`Not in the vocabulary, read as <unk>: ${[...new Set(unknownWords)].join(" ")}.`);
  if (checkpoint !== stopOf(r))
    notes.push(`The weights of step ${count(stops[stopOf(r)].step)} are not in the page: it answers with those of step ${count(stops[checkpoint].step)}.`);
  if (isBroken() && live.attentions.length) notes.push("The model is broken by the switches above.");
  return notes;
}

// The switches of the interventions, those that change something in one of the models.
function breakControls() {
  const runs = [state.run, state.beside].filter(isInPage).map(r => data.runs[r].model);
  const some = has => runs.some(({ options, parameters }) => has(options.model, parameters.map(p => p.path)));
  const attends = some((model, paths) => paths.some(path => path.endsWith(".w_v.weight")) || model.attention === "parameter-free" && (model.kind.endsWith("coder") || model.kind === "bert"));
  const change = (key, value) => choose({ changes: { ...state.changes, [key]: value } });
  const check = (key, text, applies) => {
    const input = make("input", { type: "checkbox", id: `break-${key}`, checked: state.changes[key] });
    input.addEventListener("change", () => change(key, input.checked));
    return applies && make("label", {}, input, make("span", {}, text));
  };
  const live = liveOf(state.run), components = !live || live.error ? [] : live.model.components.map(({ id }) => id);
  const checks = [check("uniform", "Uniform attention", attends), check("shuffled", "Shuffled queries", some((_, paths) => paths.some(path => path.endsWith(".w_q.weight")))),
                  check("withoutPositions", "No positions", attends && some(model => model.position !== "none"))].filter(Boolean);
  $("break").hidden = !checks.length;
  $("break").replaceChildren(make("fieldset", {}, make("legend", {}, "Break it"), make("div", { class: "checks switches" }, ...checks)),
    ...(components.length ? [menu("off", "Head or block off", [["", "none"], ...components.map(id => [id, id])], state.changes.off, off => change("off", off))] : []));
}

// The menus of models, sentences, maps, layers and heads; each is made anew only when its choices are others, so that it keeps
// the focus.
const made = {};
function remake(name, choices, create) {
  const now = JSON.stringify(choices);
  if (made[name] === now) return;
  made[name] = now;
  create();
}
function showControls() {
  const { sentences } = run(), own = !sentences.some(s => s.text === state.text), name = s => `${s.label ? `${s.label}: ` : ""}${s.text}`.slice(0, 120);
  const choices = [...sentences.map((s, i) => [i, name(s)]), ...(own ? [[-1, "your own"]] : [])];
  remake("sentence", [choices, state.run], () => $("sentence-controls").replaceChildren(...(sentences.length ? [menu("sentence", "Sentences of probes and data", choices,
    sentences.findIndex(s => s.text === state.text), i => i >= 0 && choose({ text: sentences[i].text, word: Math.max(sentences[i].index, 0) }), true)] : [])));
  if ($("sentence")) $("sentence").selectedIndex = own ? sentences.length : sentences.findIndex(s => s.text === state.text);
  if ($("text").value !== state.text) $("text").value = state.text;
  $("type").hidden = $("type-lead").hidden = ![state.run, state.beside].some(isInPage);
  const maps = mapsOf(state.run), map = mapOf(state.run);
  remake("maps", maps.map(m => m.key), () => $("map-controls").replaceChildren(
    ...(maps.length > 1 ? [segments("map", "Map", maps.map(m => [m.key, m.title]), map.key, key => choose({ map: key }))] : [])));
  remake("heads", map && [map.layers, map.heads], () => $("attention-controls").replaceChildren(...(map ? [
    segments("layer", "Layer", d3.range(map.layers).map(l => [l, String(l)]), state.layer, layer => choose({ layer })),
    segments("head", "Head", [...(map.heads > 1 ? [["mean", "Mean"]] : []), ...d3.range(map.heads).map(h => [h, String(h)])], state.head, head => choose({ head })),
  ] : [])));
  for (const key of ["map", "layer", "head"])
    document.querySelectorAll(`input[name=${key}]`).forEach(input => { input.checked = input.value === String(key === "map" ? map.key : state[key]); });
  remake("break", [state.run, state.beside, maps.map(m => [m.key, m.layers, m.heads])], breakControls);
}

let panes = [], redrawArithmetic;

function showArithmetic() {
  const map = mapOf(state.run), possible = Boolean(map && map.steps && state.head !== "mean");
  $("arithmetic").hidden = !possible;
  $("arithmetic-note").hidden = !map || possible;
  $("arithmetic-note").textContent = state.head === "mean" ? "Choose a head to see the arithmetic of a weight: the mean of heads has none."
    : "The arithmetic needs weights that are not in the page.";
  if (!possible) return;
  const tokens = map.columns.map((token, i) => [i, `${i}: ${shownToken(token)}`]);
  remake("key", tokens, () => $("key-controls").replaceChildren(menu("key", "Attended word", tokens, state.key, key => choose({ key }))));
  $("key").selectedIndex = state.key;
  redrawArithmetic();
}

// What is shown of the live models; translations that are not whole are written on after the frame that shows them so far.
let frame = null;

function showLive() {
  cancelAnimationFrame(frame);
  const unfinished = [state.run, state.beside].filter(r => r !== null).map(liveOf).filter(isWriting);
  const more = () => {
    unfinished.forEach(writtenOn);
    showLive();
  };
  if (unfinished.length) frame = requestAnimationFrame(() => { frame = requestAnimationFrame(more); });
  showControls();
  showTime();
  $("panes").classList.toggle("pair", state.beside !== null);
  panes.forEach(pane => pane.show());
  showArithmetic();
  showAblation();
}

function startLive() {
  showSection("attention", data.runs.some((run, i) => run.sentences.length || isInPage(i)));
  panes = [makePane("", () => state.run), makePane("-beside", () => state.beside)];
  $("panes").replaceChildren(...panes.map(({ pane }) => pane));
  redrawArithmetic = figure($("arithmetic-figure"), drawArithmetic);
  redrawAblation = figure($("ablation-figure"), drawAblation);
  $("text").addEventListener("input", () => choose({ text: $("text").value, word: firstTarget($("text").value) }));
  if (data.runs.length < 2) return;
  const names = data.runs.map((run, i) => [i, run.name]);
  $("model-controls").append(menu("run", "Model", names, state.run, i => choose({ run: i }), true),
    menu("beside", "Beside it", [[null, "no other"], ...names], state.beside, i => choose({ beside: i }), true));
}

// The word of a text that the task asks about; the chosen one stays where there is none.
function firstTarget(text) {
  try {
    const { targets } = taskOf(state.run).read(text);
    return targets.length ? targets[0] : state.word;
  } catch (error) {
    if (error instanceof Refusal) return state.word;
    throw error;
  }
}
