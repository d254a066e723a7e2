// The panes of the live models: answers, tokens and attention of the typed text.

function choiceList(choices) {
  return make("ul", { class: "choices" }, ...choices.map(({ name, value, text }) => make("li", {}, make("span", {}, name),
    make("meter", { min: 0, max: 1, value, "aria-label": name }), make("output", {}, text))));
}

// The answer in words and bars.
function answerElements(live) {
  const { task, model, sentence, translation } = live, word = Math.min(state.word, sentence.words.length - 1);
  if (translation)
    return [make("p", { class: "written" }, `${translation.text || "(nothing)"}${isWriting(live) ? " …" : ""}`),
      choiceList([{ name: "probability", value: translation.probability, text: percent(translation.probability) }])];
  if (task.kind === "static-embedding")
    return [make("h4", {}, `Nearest to “${shownToken(sentence.words[word])}”, by cosine`),
      choiceList(task.neighbours(model, sentence.ids[word], mostChoices).map(({ word: name, cosine }) => ({ name, value: Math.max(cosine, 0), text: cosine.toFixed(2) })))];
  const answers = answersOf(live), parts = [];
  if (!answers.length) return [];
  const best = answer => argmax(answer.probabilities), name = answer => shownToken(sentence.words[answer.index]);
  if (answers.length > 1)
    parts.push(make("ul", { class: "verdicts" }, ...answers.map(answer => make("li", { class: answer.index === word && "chosen" },
      make("b", {}, name(answer)), ` ${shownToken(answer.choices[best(answer)])} `, make("span", { class: "soft" }, percent(answer.probabilities[best(answer)]))))));
  const answer = answers.find(a => a.index === word) || answers[0], { choices, probabilities } = answer;
  const order = d3.range(choices.length).sort((a, b) => probabilities[b] - probabilities[a]).slice(0, mostChoices);
  const what = task.kind === "language-model" ? "Next token" : answer.index === undefined ? "Class of the text" : `“${name(answer)}”`;
  parts.push(make("h4", {}, what), choiceList(order.map(i => ({ name: shownToken(choices[i]), value: probabilities[i], text: percent(probabilities[i]) }))));
  return parts;
}

// A language model writes on, a few tokens at a time, until the text changes.
function writeOn(box, { task, model, sentence, key }, r) {
  const written = make("span", { class: "continued" });
  box.append(make("p", { class: "written" }, make("span", { class: "soft" }, task.tokenizer.joined(sentence.words)), written));
  const tokens = [], next = task.continuation(model, sentence.ids);
  let ended = false;
  const write = () => {
    if (!box.isConnected || latest.get(r).key !== key || tokens.length === writtenTokens) return;
    for (const end = performance.now() + 8; performance.now() < end && tokens.length < writtenTokens;) {
      const { value, done } = next.next();
      ended = done;
      if (done) break;
      tokens.push(value);
    }
    const before = task.tokenizer.kind === "word" && tokens.length ? " " : "";
    written.textContent = before + task.tokenizer.joined(tokens);
    if (!ended) setTimeout(write, 0);
  };
  setTimeout(write, 0);
}

// One of the panes; `suffix` tells the ids of the second from those of the first.
function makePane(suffix, runOf) {
  const id = name => `${name}${suffix}`, box = (name, attributes = {}) => make("div", { id: id(name), ...attributes });
  const name = make("h3", { id: id("pane-name") }), note = make("p", { class: "note", id: id("note"), role: "status" }), answer = box("answer", { class: "answer" });
  const title = make("p", { class: "sentence-title", id: id("sentence-title") });
  const tokens = box("tokens", { class: "tokens", role: "group", "aria-labelledby": id("sentence-title") });
  const keys = box("keys", { class: "tokens", role: "group", "aria-label": "Tokens attended to" });
  const sentence = make("p", { class: "reading", id: id("reading"), "aria-live": "polite" }), host = box("attention-map"), empty = make("p", { class: "empty" });
  const pane = make("article", { class: "pane", "aria-labelledby": id("pane-name") }, name, note, answer, title, tokens, keys, sentence, host, empty);
  const drawMap = figure(host, drawAttention(() => mapOf(runOf()), () => data.runs[runOf()].name));
  let shown = "";  // the tokens in the box
  const show = () => {
    pane.hidden = runOf() === null;
    if (pane.hidden) return;
    const r = runOf(), live = liveOf(r), map = mapOf(r), stored = data.runs[r].sentences.find(s => s.text === state.text);
    const computed = live && !live.error, words = map ? map.rows : computed ? live.sentence.words : stored ? stored.tokens : [];
    name.textContent = data.runs[r].name;
    note.replaceChildren(...notesOf(r).map(text => make("span", {}, text)));
    const isUnknown = i => Boolean(computed) && live.task.isUnknown(live.sentence, i);
    const source = map ? map.columns : words, now = JSON.stringify([r, map && map.key, words, source, isBroken()]);
    if (now !== shown) {
      tokens.replaceChildren(...words.map((token, i) => tokenElement(token, words.length === source.length && isUnknown(i), () => choose({ word: i }))));
      keys.replaceChildren(...source.map((token, i) => tokenElement(token, isUnknown(i))));
      shown = now;
    }
    keys.hidden = !map || map.rows === map.columns;
    title.hidden = !words.length;
    title.textContent = map ? "Choose a word to see what it attends to" : "The tokens: choose the word to ask about";
    [...tokens.children].forEach((element, i) => element.setAttribute("aria-pressed", i === Math.min(state.word, words.length - 1)));
    answer.setAttribute("aria-busy", isWriting(live));
    answer.replaceChildren(...(computed ? answerElements(live) : []));
    if (computed && live.task.kind === "language-model") writeOn(answer, live, r);
    host.hidden = sentence.hidden = !map;
    empty.hidden = Boolean(map) || !computed;
    empty.textContent = "This model has no attention" + (data.runs[r].model.options.model.kind === "static" ? ": every word keeps its own vector." : ".");
    for (const element of [...tokens.children, ...keys.children]) element.removeAttribute("style");
    if (!map) return;
    const weights = headWeights(map);
    shade(map.rows === map.columns ? tokens : keys, rowOf(map, weights));
    sentence.textContent = reading(map, weights);
    drawMap();
  };
  return { pane, show };
}
