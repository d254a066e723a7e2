// Try it: a typed text, one large answer of each of two models, the sentence as it is read, and the words that are known.

const mostChoices = 10, writtenTokens = 80;  // of a list; that a language model writes on
const mostWords = 300;  // of the vocabulary that are shown at once

function choiceList(choices) {
  return make("ul", { class: "choices" }, ...choices.map(({ name, value, shown }) => make("li", {}, make("span", {}, name),
    make("meter", { min: 0, max: 1, value, "aria-label": name }), make("output", {}, shown))));
}

// Whether a labelled answer is less than a fifth of the way from chance to certainty, below 60 % for two choices: "slight"
// agreement of Cohen's kappa in Landis and Koch (1977).
function isUndecided(kind, { probability, probabilities }) {
  if (!["word-sense", "classify", "tagging", "coreference"].includes(kind)) return false;
  const chance = 1 / Math.max(Object.values(probabilities).filter(p => p > 0).length, 1);
  return (probability - chance) / (1 - chance) < 0.2;
}
const answerName = (kind, prediction) => isUndecided(kind, prediction) ? t("answer.undecided") : shownToken(prediction.label);
// A probability among several is never 1, though float32 may round it.
const sure = (probability, probabilities) => percent(Object.keys(probabilities).length > 1 ? Math.min(probability, 1 - 1e-7) : probability);

// The large answer of a prediction, and how probable it is.
function largeAnswer(reading, prediction) {
  if (prediction.output !== undefined)
    return [make("p", { class: "large written" }, prediction.output || t("answer.nothing"))];
  const { label, probability, probabilities } = prediction, undecided = isUndecided(reading.kind, prediction);
  const shown = sure(probability, probabilities);
  const answer = answerName(reading.kind, prediction);
  return [make("p", { class: undecided ? "large undecided" : "large" }, undecided ? term("undecided", answer) : answer),
    make("p", { class: "sure" }, undecided ? t("answer.rather", { label: shownToken(label), percent: shown }) : shown)];
}

// The subject of an answer: a token, the class of the text, the next token.
function subject(reading, { index }) {
  if (reading.kind === "language-model") return t("answer.next");
  return index === undefined ? t("answer.class") : t("answer.word", { word: shownToken(reading.tokens[index]) });
}

// The nearest neighbours of the chosen word, of a model that predicts nothing.
function nearestElements(reading) {
  const { nearest } = reading.nearest(wordOf(reading), mostChoices);
  return [make("h4", {}, t("answer.nearest", { word: shownToken(reading.tokens[wordOf(reading)]) })),
    choiceList(nearest.map(({ word, cosine }) => ({ name: word, value: Math.max(cosine, 0), shown: fixed(cosine, 2) })))];
}

// The answers about several words, each in short.
function verdictList(reading, predictions, chosen) {
  return make("ul", { class: "verdicts" }, ...predictions.map(p => make("li", { class: p === chosen && "chosen" },
    make("b", {}, shownToken(reading.tokens[p.index])), ` ${answerName(reading.kind, p)} `, make("span", { class: "soft" }, sure(p.probability, p.probabilities)))));
}

// The answer in words and bars.
function answerElements(reading) {
  if (reading.kind === "static-embedding") return nearestElements(reading);
  const predictions = predictionsOf(reading), chosen = chosenOf(predictions);
  if (!chosen) return [];
  if (chosen.output !== undefined)
    return [...largeAnswer(reading, chosen), choiceList([{ name: t("answer.probability"), value: chosen.probability, shown: percent(chosen.probability) }])];
  const about = subject(reading, chosen), isWritten = reading.kind === "language-model";
  const parts = isWritten ? [make("h4", {}, about)] : [make("p", { class: "soft" }, about), ...largeAnswer(reading, chosen)];
  if (predictions.length > 1) parts.push(verdictList(reading, predictions, chosen));
  const likeliest = Object.entries(chosen.probabilities).sort((a, b) => b[1] - a[1]).slice(0, mostChoices);
  const nameOf = name => shownToken(name).replace(/·(\(\d+\))$/, " $1");  // "the (4)"
  parts.push(choiceList(likeliest.map(([name, value]) => ({ name: nameOf(name), value, shown: sure(value, chosen.probabilities) }))));
  return parts;
}

// A language model writes on, a few tokens between two drawings, until the text changes.
function writeOn(box, reading) {
  const written = make("span", { class: "continued" });
  box.append(make("p", { class: "written" }, make("span", { class: "soft" }, reading.text), written));
  const steps = reading.generate(writtenTokens);
  const write = () => {
    if (!box.isConnected || !box.contains(written)) return;
    const { value, done } = steps.next();
    if (done) return;
    written.textContent = value;
    setTimeout(write, 0);
  };
  setTimeout(write, 0);
}

// Notes about a run's answer.
function notesOf(r) {
  const reading = readingOf(r), { stops, model } = data.runs[r], checkpoint = checkpointOf(r);
  if (!reading) return [t(model.weights ? "note.no_engine" : "note.too_large")];
  if (reading.error) return [reading.error];
  const notes = [];
  if (reading.refusal) notes.push(reading.refusal);
  if (r !== state.run && unknownText(reading) !== unknownText(readingOf(state.run))) notes.push(unknownText(reading));
  if (checkpoint !== stopOf(r)) notes.push(t("note.checkpoint", { missing: stops[stopOf(r)].step, step: stops[checkpoint].step }));
  if (isBroken() && reading.components.length) notes.push(t("note.broken"));
  return notes.filter(Boolean);
}

// "4 of 8 words unknown"; empty where all are known.
function unknownText(reading) {
  if (!isRead(reading) || !reading.unknown_words.length) return "";
  return t("words.unknown", { unknown: reading.unknown_words.length, all: reading.words });
}

// The kind of a run's attention, a term; null where it is another kind of model.
function attentionKind(r) {
  const { kind, attention } = data.runs[r].model.options.model;
  if (kind === "static") return "no_attention";
  return ["encoder", "decoder", "encoder-decoder"].includes(kind) ? attention.replace("-", "_") : null;
}

// The answers that there are, where they are few.
function onlyText(reading) {
  const prediction = chosenOf(predictionsOf(reading)), labels = prediction && prediction.label !== undefined ? Object.keys(prediction.probabilities) : [];
  const few = labels.length > 1 && labels.length <= 6 && reading.kind !== "language-model";
  return few ? t("try.only", { labels: new Intl.ListFormat(language).format(labels) }) : "";
}

// A card with a run's answer; `suffix` tells the ids of the second from those of the first.
function makeCard(suffix, runOf) {
  const name = make("h3", { id: `model${suffix}` }), note = make("p", { class: "note", id: `note${suffix}`, role: "status" });
  const kind = make("p", { class: "soft" }), answer = make("div", { class: "answer", id: `answer${suffix}` });
  const card = make("article", { class: "card", "aria-labelledby": `model${suffix}` }, name, kind, answer, note);
  let shown;
  const show = () => {
    const r = runOf();
    card.hidden = r === null;
    if (card.hidden) return;
    const reading = readingOf(r), isSame = shown === reading && reading && reading.kind === "language-model";
    name.replaceChildren(make("i", { class: "dot", style: `background:${colourOf(r)}` }), data.runs[r].name);
    const attention = attentionKind(r);
    kind.replaceChildren(...(attention ? [term(attention, t(`kind.${attention}`))] : []));
    note.replaceChildren(...notesOf(r).map(line => make("span", {}, line)));
    if (isSame) return;  // it may be writing on
    shown = reading;
    answer.replaceChildren(...(isRead(reading) ? answerElements(reading) : []));
    if (isRead(reading) && reading.kind === "language-model") writeOn(answer, reading);
  };
  return { card, show };
}

// A token as a word of a box, struck out where it is unknown; `chosen` makes it a button.
function tokenElement(token, isUnknown, chosen) {
  const shown = shownToken(token), name = isUnknown ? t("words.is_unknown", { word: shown }) : null;
  const element = make(chosen ? "button" : "span", { type: chosen ? "button" : null, class: isUnknown && "unknown", title: name, "aria-label": chosen && name }, shown);
  if (chosen) element.addEventListener("click", chosen);
  return element;
}

let shownSentence = "";
function showSentence() {
  const reading = readingOf(state.run), tokens = isRead(reading) ? reading.tokens : [], now = JSON.stringify([tokens, language, state.run]);
  if (now !== shownSentence)
    $("sentence").replaceChildren(...tokens.map((token, i) => tokenElement(token, reading.unknown[i], () => choose({ word: i }))));
  shownSentence = now;
  [...$("sentence").children].forEach((element, i) => element.setAttribute("aria-pressed", i === wordOf(reading)));
  const unknown = unknownText(reading);
  remake("unknown-note", [unknown, language], () => $("unknown-note").replaceChildren(...(unknown ? [term("vocabulary", unknown)] : [])));
}

// Puts a word at the cursor, between spaces.
function insertWord(word) {
  const box = $("text"), { selectionStart: begin, selectionEnd: end, value } = box;
  const before = begin && !/\s$/.test(value.slice(0, begin)) ? " " : "", after = /^\s/.test(value.slice(end)) ? "" : " ";
  box.setRangeText(before + word + after, begin, end, "end");
  box.dispatchEvent(new Event("input"));
}
// The words that a model of whole words knows.
const knownWords = ({ tokenizer, vocabulary }) => tokenizer === "word" ? vocabulary.tokens.filter(token => !/^<.*>$/.test(token)) : [];
const knownLists = new Map();
function showKnownWords() {
  const words = isInPage(state.run) ? memo(knownLists, state.run, () => knownWords(run().model).sort(new Intl.Collator(language).compare)) : [];
  const search = $("known-search").value.trim().toLocaleLowerCase(language);
  $("known").hidden = !words.length;
  remake("known", [state.run, search, language], () => {
    const found = words.filter(word => word.toLocaleLowerCase(language).includes(search));
    $("known-search").placeholder = t("words.search");
    $("known-title").replaceChildren(t("words.known", { n: words.length }));
    $("known-count").textContent = t(found.length > mostWords ? "words.found_first" : "words.found", { n: found.length, shown: mostWords });
    $("known-words").replaceChildren(...found.slice(0, mostWords).map(word => {
      const button = make("button", { type: "button" }, word);
      button.addEventListener("click", () => insertWord(word));
      return make("li", {}, button);
    }));
  });
}

// The menus of models and sentences.
function showTryControls() {
  const { sentences } = run(), own = !sentences.some(s => s.text === state.text), name = s => `${s.label ? `${s.label}: ` : ""}${s.text}`.slice(0, 120);
  const choices = [...sentences.map((s, i) => [i, name(s)]), ...(own ? [[-1, t("try.own")]] : [])];
  remake("examples", [choices, state.run, language], () => $("example-controls").replaceChildren(...(sentences.length ? [menu("example", t("try.examples"), choices,
    sentences.findIndex(s => s.text === state.text), i => i >= 0 && choose({ text: sentences[i].text, word: Math.max(sentences[i].index, 0) }), true)] : [])));
  if ($("example")) $("example").selectedIndex = own ? sentences.length : sentences.findIndex(s => s.text === state.text);
  if ($("text").value !== state.text) $("text").value = state.text;
  $("type").hidden = !shownRuns().some(isInPage);
}

let cards = [];
function showAnswers() {
  showTryControls();
  showSentence();
  showKnownWords();
  cards.forEach(({ show }) => show());
  const reading = readingOf(state.run);
  $("only").textContent = isRead(reading) ? onlyText(reading) : "";
}
function startAnswers() {
  cards = [makeCard("-beside", () => state.beside), makeCard("", () => state.run)];
  $("answers").replaceChildren(...cards.map(({ card }) => card));
  $("text").oninput = () => choose({ text: $("text").value, word: null });
  $("known-search").oninput = showKnownWords;
  if (data.runs.length < 2) return;
  const names = data.runs.map((run, i) => [i, run.name]);
  $("model-controls").replaceChildren(menu("beside", t("try.beside"), [[null, t("try.no_other")], ...names], state.beside, i => choose({ beside: i }), true),
    menu("run", t("try.model"), names, state.run, i => choose({ run: i }), true));
}
