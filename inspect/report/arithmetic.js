// Why: the arithmetic of the chosen word, a row for each step with its formula and what it computes, which unfolds its numbers.

const unfolded = new Set();  // ids of steps
let chain = null;

// The token that a map explains: the token of an output where its rows are outputs, else that of the text.
function explained(map) {
  const reading = readingOf(state.run), isOfOutput = Boolean(map && ["decoder", "cross"].includes(map.key));
  return reading.explain(isOfOutput ? chosenRow(map) : wordOf(reading), isOfOutput);
}

// Words with a value each. Those that can be chosen are one stop of the tab key, in which arrow keys choose.
function chipsOf(step) {
  const ink = colours(), most = d3.max(step.chips, ({ value }) => Math.abs(value)) || 1;
  const reached = Math.max(step.chips.findIndex(({ isChosen }) => isChosen), 0);
  const box = make("div", { class: "tokens chips" }, ...step.chips.map(({ name, value, shown, isChosen, pick }, i) => {
    const button = pick && { type: "button", id: `chip ${step.id} ${i}`, "aria-pressed": String(isChosen), tabindex: i === reached ? 0 : -1 };
    const chip = make(pick ? "button" : "span", { ...button, class: isChosen && "chosen" }, shownToken(name), make("b", {}, shown));
    const colour = ink.signed(value / most);
    chip.style.background = colour;
    chip.style.color = inkOn(colour);
    if (pick) chip.addEventListener("click", pick);
    return chip;
  }));
  box.addEventListener("keydown", event => {
    const next = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[event.key], chip = next && event.target[next];
    if (!chip) return;
    event.preventDefault();
    chip.focus();
    chip.click();
  });
  return box;
}

// The element with the focus keeps it when a change creates it anew.
function keepFocus(change) {
  const { id } = document.activeElement || {};
  change();
  const again = id && document.getElementById(id);
  if (again && again !== document.activeElement) again.focus({ preventScroll: true });
}

// Fills what a step unfolds.
function showNumbers(id) {
  const box = document.getElementById(`numbers ${id}`), step = chain.groups.flatMap(({ steps }) => steps).find(other => other.id === id);
  box.hidden = !unfolded.has(id);
  keepFocus(() => box.replaceChildren(...(box.hidden ? [] : step.numbers())));
  document.getElementById(`step ${id}`).setAttribute("aria-expanded", String(!box.hidden));
}

function formulaElement({ id, text, numbers }) {
  if (!numbers) return make("span", { class: "formula" }, ...formulaNodes(text, chain.index));
  const button = make("button", { class: "formula", type: "button", id: `step ${id}`, "aria-expanded": "false", "aria-controls": `numbers ${id}` }, ...formulaNodes(text, chain.index));
  button.addEventListener("click", () => {
    unfolded[unfolded.has(id) ? "delete" : "add"](id);
    showNumbers(id);
  });
  return button;
}
function stepElement(step) {
  const { id, text, meaning, vectors, chips, more, numbers, follow } = step, name = make("p", { class: "step-name" });
  if (text) name.append(formulaElement(step));
  if (meaning) name.append(make("span", { class: "soft" }, ...rich(meaning)));
  if (follow !== undefined) {
    const button = make("button", { type: "button", class: "quiet" }, t("chain.follow"));
    button.addEventListener("click", () => choose({ layer: follow }));
    name.append(button);
  }
  const element = make("li", { class: "step" }, name);
  if (vectors) element.append(stripsOf(chain, vectors));
  if (chips) element.append(chipsOf(step));
  if (more > 0) element.append(make("p", { class: "soft" }, t("chain.more", { n: more })));
  if (numbers) element.append(make("div", { class: "numbers", id: `numbers ${id}`, hidden: true }));
  return element;
}

function showChainControls(map, layer, head) {
  const choices = map ? d3.range(map.layers).flatMap(l => d3.range(map.heads).map(h => [choiceOf(l, h), t("head.of_layer", { layer: l, head: h })])) : [];
  const take = choice => {
    const [l, h] = choice.split(" ").map(Number);
    choose({ layer: l, head: h });
  };
  remake("chain", [choices, language], () => $("chain-controls").replaceChildren(
    ...(choices.length > 1 ? [menu("chain-head", t("arithmetic.head"), choices, choiceOf(layer, head), take)] : [])));
  if (choices.length > 1) $("chain-head").selectedIndex = layer * map.heads + head;
}

// For the mean of heads, the first head is shown.
function showArithmetic() {
  const map = mapOf(state.run), reading = readingOf(state.run), isComputed = isRead(reading) && !(map && map.stop !== undefined);
  $("arithmetic").hidden = !isComputed;
  $("arithmetic-note").hidden = isComputed || !map;
  if (!isComputed) return;
  const layer = map ? layerOf(map) : 0, head = !map || headOf(map) === "mean" ? 0 : headOf(map);
  showChainControls(map, layer, head);
  chain = new Chain(explained(map), { layer, head, key: state.key }, data.runs[state.run].model);
  $("chain").explanation = chain.document;
  keepFocus(() => {
    const card = ({ title, steps }) => make("div", { class: "card" }, make("h4", {}, title), make("ol", { class: "steps" }, ...steps.map(stepElement)));
    $("chain").replaceChildren(...chain.groups.map(card));
    for (const { id, numbers } of chain.groups.flatMap(({ steps }) => steps)) if (numbers && unfolded.has(id)) showNumbers(id);
  });
}

watchStrips($("chain"));
