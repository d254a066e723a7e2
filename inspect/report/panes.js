// The section "What it learned": a pane with the attention map of each of the two models.

// The tokens of a map as buttons and, where others are attended to, these; `suffix` tells the ids of a second pane.
function makePane(suffix, runOf) {
  const id = name => `${name}${suffix}`, box = name => make("div", { id: id(name) });
  const name = make("h3", { id: id("pane-name") }), title = make("p", { class: "sentence-title", id: id("sentence-title") }, t("attention.choose"));
  const tokens = make("div", { id: id("tokens"), class: "tokens", role: "group", "aria-labelledby": id("sentence-title") });
  const keys = make("div", { id: id("keys"), class: "tokens", role: "group", "aria-label": t("attention.keys") });
  const sentence = make("p", { class: "reading", id: id("reading"), "aria-live": "polite" }), host = box("attention-map"), empty = make("p", { class: "empty" });
  const pane = make("article", { class: "pane", "aria-labelledby": id("pane-name") }, name, title, tokens, keys, sentence, host, empty);
  const drawMap = figure(host, drawAttention(runOf));
  let shown = "";  // the tokens in the boxes
  const show = () => {
    const r = runOf(), reading = r === null ? null : readingOf(r), map = r === null ? null : mapOf(r);
    pane.hidden = r === null || Boolean(reading && reading.error);
    if (pane.hidden) return;
    pane.classList.toggle("bare", !map);
    name.textContent = data.runs[r].name;
    for (const element of [title, tokens, sentence, host]) element.hidden = !map;
    keys.hidden = !map || map.rows === map.columns;
    empty.hidden = Boolean(map);
    const isStatic = data.runs[r].model.options.model.kind === "static", isKnown = reading || !data.runs[r].attention && !data.runs[r].model.weights;
    empty.textContent = t(isStatic ? "attention.static" : isKnown ? "attention.none" : "attention.not_recorded");
    if (!map) return;
    const isUnknown = i => isRead(reading) && map.columns === reading.tokens && reading.unknown[i], now = JSON.stringify([r, map.key, map.rows, map.columns]);
    if (now !== shown) {
      tokens.replaceChildren(...map.rows.map((token, i) => tokenElement(token, map.rows === map.columns && isUnknown(i), () => choose({ word: i }))));
      keys.replaceChildren(...map.columns.map((token, i) => tokenElement(token, isUnknown(i))));
      shown = now;
    }
    [...tokens.children].forEach((element, i) => {
      element.setAttribute("aria-pressed", i === chosenRow(map));
      element.removeAttribute("style");
    });
    const weights = headWeights(map);
    shade(map.rows === map.columns ? tokens : keys, rowOf(map, weights));
    sentence.textContent = attendedWords(map, weights);
    drawMap();
  };
  return { pane, show };
}

// Menus and thumbnails; each is created anew only when its choices are others, so that it keeps the focus.
const made = {};
function remake(name, choices, create) {
  const now = JSON.stringify(choices);
  if (made[name] === now) return;
  made[name] = now;
  create();
}
function showMapControls() {
  const maps = mapsOf(state.run), map = mapOf(state.run);
  remake("maps", [maps.map(m => m.key), language], () => $("map-controls").replaceChildren(
    ...(maps.length > 1 ? [segments("map", rich("attention.map"), maps.map(m => [m.key, mapTitle(m)]), map.key, key => choose({ map: key }))] : [])));
  document.querySelectorAll("input[name=map]").forEach(input => { input.checked = input.value === map.key; });
  showHeads();
}

let panes = [];

function showAttention() {
  showMapControls();
  showTime();
  const withMaps = shownRuns().filter(mapOf).length;
  $("panes").classList.toggle("pair", withMaps > 1);
  panes.forEach(({ show }) => show());
}
function startAttention() {
  panes = [makePane("-beside", () => state.beside), makePane("", () => state.run)];
  $("panes").replaceChildren(...panes.map(({ pane }) => pane));
}
