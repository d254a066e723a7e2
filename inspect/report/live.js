// The models' answers to the text: readings, and maps of their attention.

const readings = new Map();

// The checkpoint of a run that is chosen.
const stopOf = r => r === state.run ? state.stop : stopLike(r, run().stops[state.stop]);
// The one whose weights compute: the nearest in the page; undefined where the model is not in it or cannot run.
function checkpointOf(r) {
  const { stops, model } = data.runs[r], chosen = stops[stopOf(r)].step, distance = i => Math.abs(stops[i].step - chosen);
  return Object.keys(engine && model.weights || {}).map(Number).sort((a, b) => distance(a) - distance(b))[0];
}
// Whether the model of a run is in the page; of no other run beside it, no.
const isInPage = r => r !== null && checkpointOf(r) !== undefined;
const shownRuns = () => [state.beside, state.run].filter(r => r !== null);
const unchanged = { uniform: false, shuffled: false, without_positions: false, off: "" };
const isBroken = () => Object.values(state.changes).some(Boolean);

// A run's Reading of the text, or { error: message }; null where the model is not in the page.
function readingOf(r, changes = state.changes) {
  const checkpoint = checkpointOf(r);
  if (checkpoint === undefined) return null;
  const key = JSON.stringify([checkpoint, data.runs[r].stops[checkpoint].step, state.text, changes]), slot = `${r} ${changes === unchanged}`;
  if (!readings.has(slot) || readings.get(slot).key !== key) readings.set(slot, Object.assign(read(r, checkpoint, changes), { key }));
  return readings.get(slot);
}
function read(r, checkpoint, changes) {
  try {
    return new Engine(data.runs[r], checkpoint, changes).read(state.text);
  } catch (error) {
    if (error instanceof EngineError) return { error: error.message };
    throw error;
  }
}
// Forgets what was read by a run that another one replaces.
const forgetRun = r => [true, false].forEach(isUnchanged => readings.delete(`${r} ${isUnchanged}`));
// A reading that is no error.
const isRead = reading => Boolean(reading && !reading.error);
const wordOf = reading => Math.min(state.word, reading.tokens.length - 1);
const predictionsOf = reading => isRead(reading) ? reading.predict(wordOf(reading)).predictions : [];
// The prediction about the chosen word, or the first.
const chosenOf = predictions => predictions.find(p => p.index === state.word) || predictions[0];

// A map is what a stack's attention gives for a text: { key, rows, columns, layers, heads, weights(layer, head) }, tokens that
// attend and tokens that they attend to, and [query * columns + key] of a head.
const mapTitle = map => t(`map.${map.key}`);
function mapsFrom({ tokens, inputs, outputs, layers, decoder = [], cross = [] }) {
  const map = (key, modules, rows, columns) => ({ key, rows, columns, layers: modules.length, heads: modules.length && modules[0].heads.length, weights: (layer, head) => {
    const all = new Float32Array(rows.length * columns.length);
    modules[layer].heads[head].forEach((row, i) => all.set(row, i * columns.length));
    return all;
  } });
  return [map("cross", cross, outputs, tokens), map(decoder.length ? "encoder" : "self", layers, tokens, tokens), map("decoder", decoder, inputs, inputs)].filter(m => m.layers);
}

// A sentence's weights as the program recorded them at the latest kept checkpoint that is not after the chosen one.
const decoded = new Map();
function storedMap(r) {
  const { attention: view, sentences } = data.runs[r], i = sentences.findIndex(s => s.text === state.text);
  if (!view || i < 0) return null;
  const { layers, heads, weights } = view.sentences[i], { tokens } = sentences[i], size = tokens.length ** 2;
  let at = 0;
  view.stops.forEach((stop, j) => { if (stop <= stopOf(r)) at = j; });
  const all = memo(decoded, `${r} ${i} ${at}`, () => sharesOf(weights[at]));
  return { key: data.runs[r].model.options.model.kind === "encoder-decoder" ? "encoder" : "self", rows: tokens, columns: tokens, layers, heads, stop: view.stops[at],
           weights: (layer, head) => all.subarray((layer * heads + head) * size, (layer * heads + head + 1) * size) };
}

const mapLists = new WeakMap();
// The maps of a run: computed where the chosen checkpoint is in the page or the model is broken, else as the program recorded.
function mapsOf(r) {
  const reading = readingOf(r), stored = storedMap(r);
  if (stored && !isBroken() && checkpointOf(r) !== stopOf(r)) return [stored];
  if (!isRead(reading)) return [];
  const document = reading.attend();
  return memo(mapLists, document, () => mapsFrom(document));
}
const mapOf = r => mapsOf(r).find(map => map.key === state.map) || mapsOf(r)[0];
// The checkpoint that a run's map is of.
const stopOfMap = (r, map) => data.runs[r].stops[map.stop !== undefined ? map.stop : checkpointOf(r)];

// The layer and head that are shown of a map, which may have fewer than the chosen ones.
const layerOf = map => Math.min(state.layer, map.layers - 1);
const headOf = map => map.heads === 1 ? 0 : state.head === "mean" || state.head >= map.heads ? "mean" : state.head;
// The weights of a head, or the mean of all heads.
function weightsOf(map, layer, head) {
  if (head !== "mean") return map.weights(layer, head);
  const mean = new Float32Array(map.rows.length * map.columns.length);
  for (let h = 0; h < map.heads; ++h) map.weights(layer, h).forEach((w, i) => { mean[i] += w / map.heads; });
  return mean;
}
const headWeights = map => weightsOf(map, layerOf(map), headOf(map));
const chosenRow = map => Math.min(state.word, map.rows.length - 1);
const rowOf = (map, weights) => weights.subarray(chosenRow(map) * map.columns.length, (chosenRow(map) + 1) * map.columns.length);
// The token that the chosen row attends to most.
const mostAttended = map => argmax(rowOf(map, headWeights(map)));

const headName = map => t(headOf(map) === "mean" ? "head.mean_of_layer" : "head.of_layer", { layer: layerOf(map), head: headOf(map) });
const checkpointName = ({ step, note }) => t(note ? `checkpoint.${note}` : "checkpoint.step", { step });

// A component as { stack, layer, kind, head, map } from its id: "0.1", "0.ff", "decoder.0.cross.1".
function componentOf(id) {
  const [, stack, layer, cross, part] = id.match(/^(?:(encoder|decoder)\.)?(\d+)\.(cross\.)?(ff|\d+)$/), isHead = part !== "ff";
  return { stack, layer: Number(layer), kind: isHead ? (cross ? "cross" : "head") : "feed_forward", head: isHead ? Number(part) : undefined,
           map: cross ? "cross" : stack || "self" };
}
// "decoder, layer 0" and "head 1".
const layerName = ({ stack, layer }) => stack ? t(`layer.${stack}`, { layer }) : t("layer.name", { layer });
const partName = ({ kind, head }) => t(`part.${kind}`, { head });
const componentName = component => `${layerName(component)}, ${partName(component)}`;

// The head without which the answer changes most.
function busiestHead(r) {
  const reading = readingOf(r), map = mapOf(r);
  if (!map || map.heads === 1 && map.layers === 1) return { layer: 0, head: 0 };
  if (!isRead(reading) || map.key !== "self" || !predictionsOf(reading).length) return { layer: map.layers - 1, head: map.heads > 1 ? "mean" : 0 };
  const heads = ablation(r, askedOf(r)).components.filter(({ id }) => componentOf(id).kind === "head");
  const { layer, head } = componentOf(heads[argmax(heads, ({ zero }) => Math.abs(zero.loss_change))].id);
  return { layer, head };
}

// The chosen word's vectors, or the means of all, for the maps of embeddings; null where the checkpoint is not in the page.
function typedVectors(r) {
  const reading = readingOf(r);
  if (!isRead(reading) || checkpointOf(r) !== stopOf(r)) return null;
  const whole = data.runs[r].points.every(point => point.index < 0), word = wordOf(reading);
  const [{ static: before, contextual: after }] = reading.embed(whole ? undefined : word).sentences;
  return { name: whole ? t("embeddings.your_text") : shownToken(reading.tokens[word]), before, after };
}

// The word of a text that the task asks about; the chosen one stays where there is none.
function firstTarget() {
  const reading = readingOf(state.run);
  return isRead(reading) && reading.targets.length ? reading.targets[0] : state.word;
}
