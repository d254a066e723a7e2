// What each task makes of a sentence: its tokens, the words it is about, and answers with their probabilities, as the
// program's tasks in train/tasks/. Errors have the program's words.

const maskText = "[MASK]", endsOfText = ["<|endoftext|>", "<eos>", "</s>"];

// A text that the task cannot read: the key of a text that says why, and its values.
class Refusal extends Error {
  constructor(key, values) {
    super(key);
    Object.assign(this, { key, values });
  }
}

// Greedy decoding by an encoder-decoder, a token at a time; no token attends to a later one, so that what is computed stays.
class Translation {
  constructor(task, model, encoded) {
    Object.assign(this, { task, model, encoded, cache: { length: 0 }, ids: [], steps: [], probability: 1 });
    this.end = task.tokenizer.id("<eos>");
    this.last = task.tokenizer.id("<bos>");
  }
  get isWhole() { return this.last === this.end || this.steps.length === this.task.maxLength; }
  // Writes until a time of performance.now(), at least a token.
  writeUntil(time) {
    const { model } = this;
    do {
      model.attentions = [];
      const chances = softmax(model.logits(model.decode([this.last], this.encoded, this.cache)[0]));
      this.steps.push(model.attentions);
      this.last = argmax(chances);
      this.probability *= chances[this.last];
      if (this.last !== this.end) this.ids.push(this.last);
    } while (!this.isWhole && performance.now() < time);
  }
  // What is written so far: `inputs` and `outputs` of the decoder with what begins and ends them, and its attention.
  get kept() { return this.ids.slice(0, this.task.maxLength - 1); }
  get inputs() { return ["<bos>", ...this.words(this.kept)].slice(0, this.steps.length); }
  get outputs() { return [...this.words(this.kept), "<eos>"].slice(0, this.steps.length); }
  get text() { return this.task.tokenizer.joined(this.words(this.ids)).replace(/^ /, ""); }
  get attentions() {
    return this.steps[0].map((module, m) => ({ ...module, heads: module.heads.map((_, h) => ({ weights: this.steps.map(step => step[m].heads[h].weights[0]) })) }));
  }
  words(ids) { return ids.map(id => this.task.tokenizer.tokens[id]); }
}

class Task {
  // Of a run's "model" in the page.
  constructor(view) {
    this.kind = view.options.task.kind;
    this.maxLength = view.options.model.max_length;
    this.truncates = view.options.task.truncate;
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
      if (!length) throw new Refusal("refusal.empty_text");
      if (length > this.maxLength)
        throw this.tooLong("refusal.long_text", length);
      return { ...sentence, targets: [length - 1] };
    }
    const pieces = tokenizer.sentencePieces(text);
    if (this.kind === "masked-language-model") return this.fitted(this.masked(pieces));
    const sentence = this.fitted({ ...tokenizer.encodeAll(pieces), targets: [] });
    if (this.kind === "tagging") {
      let at = 0;
      for (const word of tokenizer.piecesOfWords(text)) {
        const named = Math.max(word.findIndex(namesSomething), 0);
        word.forEach((piece, i) => {
          if (i === named && at < sentence.words.length) sentence.targets.push(at);
          at += tokenizer.encode(piece).ids.length;
        });
      }
    }
    sentence.words.forEach((word, i) => { if (this.words.includes(word)) sentence.targets.push(i); });
    return sentence;
  }
  fitted(sentence) {
    const { length } = sentence.words;
    if (!length) throw new Refusal("refusal.empty");
    if (length > this.maxLength && !this.truncates) throw this.tooLong(this.tokenizer.kind === "word" ? "refusal.long_words" : "refusal.long_tokens", length);
    return { ...sentence, words: sentence.words.slice(0, this.maxLength), ids: sentence.ids.slice(0, this.maxLength) };
  }
  tooLong(key, length) { return new Refusal(key, { length: String(length), most: String(this.maxLength) }); }
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
  // The words of a text and those that are unknown, without punctuation marks and masks.
  wordsOf(text) {
    const { tokenizer } = this, unmasked = text.replace(tokenizer.lowers ? /\[mask\]/gi : /\[MASK\]/g, " ");
    const words = new Tokenizer({ kind: "word", lower_case: tokenizer.lowers }, []).pieces(unmasked).filter(namesSomething);
    return { words, unknown: words.filter(word => tokenizer.encodeAll(tokenizer.pieces(word)).ids.includes(unknown)) };
  }
  isUnknown(sentence, i) { return sentence.ids[i] === unknown && sentence.words[i] !== maskText; }

  // Whether it answers about single words, so that any token may be asked about.
  get isAboutWords() { return !["classify", "translate", "static-embedding", "language-model"].includes(this.kind); }
  hasAnswer(sentence) { return this.kind !== "static-embedding" && (this.kind !== "coreference" || sentence.words.length > 1); }
  // What must be said about the answer, or why there is none, as { key, values } of a text; else null.
  refusal(sentence) {
    if (this.kind === "static-embedding") return { key: "refusal.static_embedding" };
    if (!this.hasAnswer(sentence)) return { key: "refusal.alone" };
    if (this.kind === "masked-language-model" && !sentence.targets.length) return { key: "refusal.no_mask", values: { mask: maskText } };
    return this.words.length && !sentence.targets.length ? { key: "refusal.no_target", values: { words: this.words.slice(0, 12).join(", ") } } : null;
  }

  // The logits of the choices about token `index`: { choices, logits }.
  scores(model, sentence, x, index) {
    if (this.kind === "classify") return { choices: this.labels, logits: model.logits(model.sentence(x)) };
    const y = model.logits(x[index]);
    if (this.kind !== "coreference") return { choices: this.labels || this.tokenizer.tokens, logits: y };
    return { choices: sentence.words, logits: Float32Array.from(x, (row, t) => t === index ? -Infinity : dot(row, y) / Math.sqrt(this.width)) };
  }
  // { choices, logits, probabilities } of a word, or of the whole text.
  answer(model, sentence, x, index) {
    const { choices, logits } = this.scores(model, sentence, x, index);
    return { choices, logits, probabilities: softmax(logits) };
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
      if (endsOfText.includes(this.tokenizer.tokens[best].replace(/^ /, ""))) return;
      text.push(best);
      yield this.tokenizer.tokens[best];
    }
  }
}
