// Why: the arithmetic of the chosen word, a row for each step with its formula and what it computes, which unfolds its numbers.

const unfolded = new Set();  // ids of steps
let chain = null;

// What a map explains: the token of an output where its rows are outputs, else that of the text.
function explained(map) {
  const reading = readingOf(state.run), isOfOutput = Boolean(map && ["decoder", "cross"].includes(map.key));
  return reading.explain(isOfOutput ? chosenRow(map) : wordOf(reading), isOfOutput);
}

function chipsOf(step) {
  const ink = colours(), most = d3.max(step.chips, ({ value }) => Math.abs(value)) || 1;
  return make("div", { class: "tokens chips" }, ...step.chips.map(({ name, value, shown, isChosen, pick }, i) => {
    const chip = make(pick ? "button" : "span", { ...(pick ? { type: "button", id: `chip ${step.id} ${i}`, "aria-pressed": String(isChosen) } : {}), class: isChosen && "chosen" }, shownToken(name), make("b", {}, shown));
    const colour = ink.signed(value / most);
    chip.style.background = colour;
    chip.style.color = inkOn(colour);
    if (pick) chip.addEventListener("click", pick);
    return chip;
  }));
}

// Fills what a step unfolds.
function showNumbers(id) {
  const box = document.getElementById(`numbers ${id}`), step = chain.groups.flatMap(({ steps }) => steps).find(other => other.id === id), focused = document.activeElement && document.activeElement.id;
  box.hidden = !unfolded.has(id);
  box.replaceChildren(...(box.hidden ? [] : step.numbers()));
  box.previousElementSibling.closest(".step").querySelector("[aria-expanded]").setAttribute("aria-expanded", String(!box.hidden));
  if (focused && box.contains(document.getElementById(focused))) document.getElementById(focused).focus();
}

function stepElement(step) {
  const { id, text, meaning, vectors, chips, more, numbers, follow } = step, words = meaning ? rich(meaning) : [];
  const name = make(numbers ? "button" : "span", { class: "formula", ...(numbers ? { type: "button", id: `step ${id}`, "aria-expanded": "false", "aria-controls": `numbers ${id}` } : {}) }, ...formulaNodes(text, chain.index));
  if (numbers) name.addEventListener("click", () => {
    unfolded[unfolded.has(id) ? "delete" : "add"](id);
    showNumbers(id);
  });
  const other = follow === undefined ? [] : [make("button", { type: "button", class: "quiet" }, t("chain.follow"))];
  for (const button of other) button.addEventListener("click", () => choose({ layer: follow }));
  return make("li", { class: "step" }, make("p", { class: "step-name" }, ...(text ? [name, " "] : []), make("span", { class: "soft" }, ...words), ...other),
    ...(vectors ? [stripsOf(chain, vectors)] : []), ...(chips ? [chipsOf(step)] : []), ...(more > 0 ? [make("p", { class: "soft" }, t("chain.more", { n: more }))] : []),
    ...(numbers ? [make("div", { class: "numbers", id: `numbers ${id}`, hidden: true })] : []));
}

function showArithmetic() {
  const map = mapOf(state.run), reading = readingOf(state.run), isComputed = isRead(reading) && !isWriting(reading) && !(map && map.stop !== undefined);
  $("arithmetic").hidden = !isComputed;
  $("arithmetic-note").hidden = isComputed || !map;
  if (!isComputed) return;
  const { options } = data.runs[state.run].model, head = map ? Math.max(0, headOf(map) === "mean" ? 0 : headOf(map)) : 0, layer = map ? layerOf(map) : 0, focused = document.activeElement && document.activeElement.id;
  chain = new Chain(explained(map), { layer, head, key: state.key }, options);
  const choices = map ? d3.range(map.layers).flatMap(l => d3.range(map.heads).map(h => [choiceOf(l, h), t("head.of_layer", { layer: l, head: h })])) : [];
  remake("chain", [choices, language], () => $("chain-controls").replaceChildren(...(choices.length > 1
    ? [menu("chain-head", t("arithmetic.head"), choices, choiceOf(layer, head), choice => choose({ layer: Number(choice.split(" ")[0]), head: Number(choice.split(" ")[1]) }))] : [])));
  if ($("chain-head")) $("chain-head").selectedIndex = layer * map.heads + head;
  d3.select("#chain").datum(chain.document);
  const groups = chain.groups.map(({ title, steps }) => make("div", { class: "card" }, make("h4", {}, title), make("ol", { class: "steps" }, ...steps.map(stepElement))));
  $("chain").replaceChildren(...groups);
  for (const { steps } of chain.groups) for (const { id, numbers } of steps) if (numbers && unfolded.has(id)) showNumbers(id);
  if (focused && $("chain").contains(document.getElementById(focused))) document.getElementById(focused).focus();
}

watchStrips($("chain"));
