// What each task makes of a sentence: its tokens, the words it is about, and answers with their probabilities, as the
// program's tasks in train/tasks/. Errors have the program's words.

const maskText = "[MASK]";

// A text that the task cannot read.
class Refusal extends Error {}

// The attention of a whole output from that of each of its tokens, which attend to no later one.
function joinedSteps(steps) {
  const { length } = steps, padded = (row, filler) => {
    const whole = new Float32Array(length).fill(filler);
    whole.set(row);
    return whole;
  };
  return steps[0].map((module, m) => ({ ...module, heads: module.heads.map((_, h) => {
    const rows = name => steps.map(step => step[m].heads[h][name][0]);
    const whole = (name, filler) => module.cross ? rows(name) : rows(name).map(row => padded(row, filler));
    return { q: rows("q"), k: steps[length - 1][m].heads[h].k, scores: whole("scores", -Infinity), weights: whole("weights", 0) };
  }) }));
}

class Task {
  // Of a run's "model" in the page.
  constructor(view) {
    this.kind = view.options.task.kind;
    this.maxLength = view.options.model.max_length;
    this.truncates = view.options.task.truncate || view.options.task.format === "coarsewsd";
    this.width = view.options.model.width;
    this.labels = view.vocabulary.labels;
    this.words = view.vocabulary.targets || [];
    this.tokenizer = new Tokenizer(view.cutting, view.vocabulary.tokens);
  }

  // { words, ids, targets }: tokens, and the positions of those that the task asks about.
  read(text) {
    const { tokenizer } = this;
    if (this.kind === "language-model") {
      const sentence = tokenizer.encodeAll(tokenizer.pieces(text)), { length } = sentence.words;
      if (!length) throw new Refusal("the text is empty; give at least one token");
      if (length > this.maxLength)
        throw new Refusal(`the text has ${length} tokens, more than the model's longest, model.max_length = ${this.maxLength}`);
      return { ...sentence, targets: [length - 1] };
    }
    const pieces = tokenizer.sentencePieces(text);
    if (this.kind === "masked-language-model") return this.fitted(this.masked(pieces));
    const sentence = this.fitted({ ...tokenizer.encodeAll(pieces), targets: [] });
    if (this.kind === "tagging") {
      let at = 0;
      for (const piece of pieces) {
        if (at < sentence.words.length) sentence.targets.push(at);
        at += tokenizer.encode(piece).ids.length;
      }
    }
    sentence.words.forEach((word, i) => { if (this.words.includes(word)) sentence.targets.push(i); });
    return sentence;
  }
  fitted(sentence) {
    const { length } = sentence.words, what = this.tokenizer.kind === "word" ? "words" : "tokens";
    if (!length) throw new Refusal("the sentence is empty; give at least one word");
    if (length > this.maxLength && !this.truncates)
      throw new Refusal(`the sentence has ${length} ${what}, more than the model's longest, model.max_length = ${this.maxLength}`);
    return { ...sentence, words: sentence.words.slice(0, this.maxLength), ids: sentence.ids.slice(0, this.maxLength) };
  }
  masked(pieces) {
    const mask = this.tokenizer.sentencePieces(maskText), bare = piece => piece.length > 1 ? piece.replace(/^ /, "") : piece;
    const sentence = { words: [], ids: [], targets: [] };
    for (let i = 0; i < pieces.length;) {
      const isMask = mask.every((piece, j) => i + j < pieces.length && bare(pieces[i + j]) === bare(piece));
      if (isMask) sentence.targets.push(sentence.ids.length);
      const { words, ids } = isMask ? { words: [maskText], ids: [unknown] } : this.tokenizer.encode(pieces[i]);
      sentence.words.push(...words);
      sentence.ids.push(...ids);
      i += isMask ? mask.length : 1;
    }
    return sentence;
  }
  isUnknown(sentence, i) { return sentence.ids[i] === unknown && sentence.words[i] !== maskText; }

  // Whether it answers about single words, so that any token may be asked about.
  get isAboutWords() { return !["classify", "translate", "static-embedding", "language-model"].includes(this.kind); }
  // Why there is no answer, or null.
  refusal(sentence) {
    if (this.kind === "static-embedding") return "A model of static embeddings predicts nothing: these are its words’ nearest neighbours.";
    if (this.kind === "masked-language-model" && !sentence.targets.length) return `Write ${maskText} in place of each word to predict, or choose a word.`;
    if (this.words.length && !sentence.targets.length)
      return `The sentence has none of the words that the model was trained on (${this.words.slice(0, 12).join(", ")}): choose the word to ask about.`;
    return null;
  }

  // The logits of the choices about token `index`: { choices, logits }.
  scores(model, sentence, x, index) {
    if (this.kind === "classify") return { choices: this.labels, logits: model.logits(model.sentence(x)) };
    const y = model.logits(x[index]);
    if (this.kind !== "coreference") return { choices: this.labels || this.tokenizer.tokens, logits: y };
    if (x.length < 2) throw new Refusal("the sentence has no other word that the pronoun could refer to");
    return { choices: sentence.words, logits: Float32Array.from(x, (row, t) => t === index ? -Infinity : dot(row, y) / Math.sqrt(this.width)) };
  }
  // { index, choices, probabilities } of a word, or of the whole text without `index`.
  answer(model, sentence, x, index) {
    const { choices, logits } = this.scores(model, sentence, x, index);
    return { index: this.kind === "classify" ? undefined : index, choices, probabilities: softmax(logits) };
  }
  // The words of the vocabulary nearest to a word's static vector, by cosine.
  neighbours(model, id, count) {
    const vector = model.row("embedding.weight", id), norm = v => Math.sqrt(dot(v, v)) || 1;
    const cosines = this.tokenizer.tokens.map((_, i) => {
      const other = model.row("embedding.weight", i);
      return dot(vector, other) / norm(vector) / norm(other);
    });
    return d3.range(unknown + 1, cosines.length).filter(i => i !== id).sort((a, b) => cosines[b] - cosines[a]).slice(0, count)
      .map(i => ({ word: this.tokenizer.tokens[i], cosine: cosines[i] }));
  }

  // Greedy decoding of a translation: { inputs, outputs, text, probability, attentions } of the decoder; inputs and outputs
  // with what begins and ends them.
  translation(model, encoded) {
    const { tokenizer } = this, begin = tokenizer.id("<bos>"), end = tokenizer.id("<eos>"), cache = { length: 0 }, ids = [], steps = [];
    let probability = 1;
    for (let t = 0, last = begin; t < this.maxLength && last !== end; ++t) {
      model.attentions = [];
      const chances = softmax(model.logits(model.decode([last], encoded, cache)[0]));
      steps.push(model.attentions);
      last = chances.indexOf(chances.reduce((a, b) => Math.max(a, b)));
      probability *= chances[last];
      if (last !== end) ids.push(last);
    }
    const kept = ids.slice(0, this.maxLength - 1), wordOf = id => tokenizer.tokens[id];
    return { ids: kept, inputs: [begin, ...kept].map(wordOf), outputs: [...kept.map(wordOf), "<eos>"], text: tokenizer.joined(ids.map(wordOf)).replace(/^ /, ""),
             probability, attentions: joinedSteps(steps) };
  }

  // The mean loss of the tokens of an output, as the training of a translation computes it.
  outputLoss(model, encoded, ids) {
    const { tokenizer } = this, wanted = [...ids, tokenizer.id("<eos>")], y = model.decode([tokenizer.id("<bos>"), ...ids], encoded);
    return d3.mean(y, (row, t) => -Math.log(softmax(model.logits(row))[wanted[t]]));
  }

  // Continues a text greedily, a token at a time; as `qkv generate --temperature 0`.
  *continuation(model, ids) {
    const text = [...ids], restart = Math.floor((this.maxLength + 1) / 2), caches = model.options.kind === "decoder";
    for (let cache = { length: 0 };;) {
      if (cache.length === this.maxLength) cache = { length: 0 };
      const unread = cache.length ? 1 : text.length <= this.maxLength ? text.length : restart;
      const x = model.contextual(text.slice(-unread), caches ? cache : undefined), logits = model.logits(x[x.length - 1]);
      let best = unknown + 1;
      for (let i = best + 1; i < logits.length; ++i) if (logits[i] > logits[best]) best = i;
      text.push(best);
      yield this.tokenizer.tokens[best];
    }
  }
}
