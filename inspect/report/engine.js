// The engine: all that the views ask of a model. Its documents have the form of the JSON of `qkv predict`, `attend`, `explain`,
// `embed`, `ablate` and `generate`, so that another engine can take its place.

const memo = (cache, key, compute) => {
  if (!cache.has(key)) cache.set(key, compute());
  return cache.get(key);
};

const tasks = new Map();
const taskOf = view => memo(tasks, view, () => new Task(view));
// The words that a model of whole words knows, of a run's "model" in the page.
const knownWords = view => view.cutting.kind === "word" ? view.vocabulary.tokens.filter(token => !/^<.*>$/.test(token)) : [];

class Engine {
  // Of a run's "model" in the page and the weights of a checkpoint; `changes` as of `Model`.
  constructor(view, weights, changes) {
    this.task = taskOf(view);
    this.model = new Model(view, weights, changes);
  }
  // A text as the model reads it; throws Refusal.
  read(text) { return new Reading(this.task, this.model, text); }
}

class Reading {
  // `tokens` [T], `ids` [T], `targets`: positions that the task asks about; `unknown` [T]: whether a token is in no vocabulary;
  // `words`: { words, unknown }, without punctuation marks.
  constructor(task, model, text) {
    const sentence = task.read(text);
    Object.assign(this, { task, model, text, sentence, tokens: sentence.words, ids: sentence.ids, targets: sentence.targets });
    this.unknown = this.tokens.map((_, i) => task.isUnknown(sentence, i));
    model.attentions = [];
    this.x = model.contextual(this.ids);
    this.attentions = model.attentions;
    this.translation = this.kind === "translate" ? new Translation(task, model, this.x) : null;
    this.words = task.wordsOf(text);
    this.documents = new Map();
  }

  get kind() { return this.task.kind; }
  get joined() { return this.task.tokenizer.joined(this.tokens); }
  // Why there is no answer, as { key, values } of a text; null where there is one.
  get refusal() { return this.task.refusal(this.sentence); }
  // Ids of heads and feed-forward blocks in the order of computing: "0.1", "0.ff"; of two stacks "decoder.0.cross.1".
  get components() { return this.model.components; }
  // An output is written a few tokens at a time, until a time of performance.now().
  get isWhole() { return !this.translation || this.translation.isWhole; }
  writeUntil(time) { this.translation.writeUntil(time); }

  // { predictions: [{ text, words, unknown_words, index, label | output, probability, probabilities: {name: p}, logits }] } about
  // the task's words and, where it answers about words, token `word`.
  predict(word) {
    const { text, translation, words: { words, unknown } } = this, common = { text, words: words.length, unknown_words: unknown };
    if (translation) return { predictions: [{ ...common, output: translation.text, probability: translation.probability }] };
    return memo(this.documents, `predict ${word}`, () => ({ predictions: this.asked(word).map(index => ({ ...common, ...this.prediction(index) })) }));
  }
  asked(word) {
    if (!this.task.hasAnswer(this.sentence)) return [];
    if (this.kind === "classify") return [undefined];
    return this.task.isAboutWords && !this.targets.includes(word) ? [...this.targets, word] : this.targets;
  }
  prediction(index) {
    const { choices, logits, probabilities } = this.task.answer(this.model, this.sentence, this.x, index), best = argmax(probabilities);
    const seen = new Set(), repeated = new Set(choices.filter(choice => seen.size === seen.add(choice).size));
    const names = choices.map((choice, i) => repeated.has(choice) ? `${choice} (${i})` : choice);  // of words of a sentence
    return { index, label: choices[best], probability: probabilities[best],
             probabilities: Object.fromEntries(names.map((name, i) => [name, probabilities[i]])), logits };
  }

  // { tokens, layers: [{ heads: [weights [query][key]] }] }, of an encoder-decoder also { inputs, outputs, decoder, cross }.
  attend() {
    const { translation } = this;
    return memo(this.documents, `attend ${translation ? translation.steps.length : ""}`, () => {
      const document = { tokens: this.tokens, layers: this.heads(a => !a.cross && (!translation || a.stack === "encoder"), this.tokens.length) };
      if (!translation) return document;
      const { inputs, outputs } = translation;
      return { ...document, inputs, outputs, decoder: this.heads(a => a.stack === "decoder" && !a.cross, inputs.length), cross: this.heads(a => a.cross, this.tokens.length) };
    });
  }
  get modules() { return this.attentions.concat(this.translation ? this.translation.attentions : []); }
  heads(chosen, keys) {
    const whole = row => row.length === keys ? row : Float32Array.from({ length: keys }, (_, j) => row[j] || 0);
    return this.modules.filter(chosen).map(({ heads }) => ({ heads: heads.map(({ weights }) => weights.map(whole)) }));
  }

  // See explain.js.
  explain(index, isOfOutput) { return memo(this.documents, `explain ${index} ${isOfOutput}`, () => explanation(this, index, isOfOutput)); }

  // { sentences: [{ tokens, index, static, contextual }] }: the vectors of a token, without `index` the means of all.
  embed(index) {
    const of = rows => index === undefined ? rows[0].map((_, i) => d3.mean(rows, row => row[i])) : rows[index];
    return { sentences: [{ tokens: this.tokens, index, static: of(this.model.embedded(this.ids)), contextual: of(this.x) }] };
  }
  // { nearest: [{ word, cosine }] }: the vocabulary's words nearest to a token's static vector.
  nearest(index, count) { return { nearest: this.task.neighbours(this.model, this.ids[index], count) }; }

  // Yields after each component; { whole: { loss }, components: [{ id, zero: { loss, loss_change } }] } of the answer about
  // `index`, or of the output.
  *ablate(index) {
    const { changes } = this.model, choice = this.translation ? 0 : argmax(this.task.answer(this.model, this.sentence, this.x, index).probabilities);
    const whole = this.loss(index, choice), components = [];
    for (const id of this.components) {
      this.model.changes = { ...changes, off: id };
      const loss = this.loss(index, choice);
      this.model.changes = changes;
      components.push({ id, zero: { loss, loss_change: loss - whole } });
      yield;
    }
    return { whole: { loss: whole }, components };
  }
  // The loss of an answer that was given before.
  loss(index, choice) {
    const { task, model, translation } = this, x = model.contextual(this.ids);
    return translation ? task.outputLoss(model, x, translation.kept) : -Math.log(task.answer(model, this.sentence, x, index).probabilities[choice]);
  }

  // Yields how a language model continues the text, longer each time; as `qkv generate --temperature 0`.
  *generate() {
    const tokens = [], { tokenizer } = this.task;
    for (const token of this.task.continuation(this.model, this.ids)) {
      tokens.push(token);
      yield (tokenizer.kind === "word" ? " " : "") + tokenizer.joined(tokens);
    }
  }
}
