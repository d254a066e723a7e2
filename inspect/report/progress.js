// The progress of a training: a row of metrics and two curves of each model; and the figures of the page, which follow it.

const frameBudget = 10;  // ms of a frame
let redrawLiveCurves = [], progressRows = [];

const progressKeys = ["train.step_number", "train.loss", "train.valid_loss", "train.score", "train.answer", "train.milliseconds", "train.checksum"];
const scoreOf = ({ facts: [facts] }) => facts ? facts.score_name : "accuracy";

// The row of a model, and its cells by the keys of their texts.
function progressRow(i) {
  const { trainer, models } = training, cells = {}, row = make("tr", {}, make("th", { scope: "row" }, make("i", { class: "dot", style: `background:${colourOf(firstLive() + i)}` }), models[i].name));
  for (const key of progressKeys) row.append(cells[key] = make("td", { "data-name": t(key, { score: metricName(scoreOf(trainer)) }) }));
  return { row, cells };
}
// The buttons that save a model once it rests.
function saveButtons(i) {
  const { trainer, models } = training;
  const button = (id, key, act) => {
    const element = make("button", { type: "button", class: "quiet", id: `${id}-${i}` }, t(key));
    element.addEventListener("click", act);
    return element;
  };
  return make("fieldset", {}, make("legend", {}, `${t("train.save")}: ${models[i].name}`), make("div", { class: "buttons" },
    button("save-model", "train.save_model", () => trainer.export(i)),
    button("save-config", "train.save_config", () => download(new Blob([models[i].config], { type: "text/plain" }), `${fileName(models[i].name)}.toml`)),
    button("copy-link", "link.copy", () => showLink(i)), ...(i ? [] : fileButtons())));
}
// Edited data, which a config needs beside it.
function fileButtons() {
  return Object.entries(training.changed).map(([path, text]) => {
    const button = make("button", { type: "button", class: "quiet" }, t("train.save_file", { path }));
    button.addEventListener("click", () => download(new Blob([text], { type: "text/plain" }), path.replace(/.*\//, "")));
    return button;
  });
}
function startProgress() {
  const { trainer, models } = training, isShown = Boolean(trainer && trainer.facts.length);
  for (const id of ["train-progress", "train-curves", "train-save", "train-claims"]) $(id).hidden = !isShown;
  progressRows = isShown ? models.map((_, i) => progressRow(i)) : [];
  if (!isShown) return;
  $("train-save").replaceChildren(...models.map((_, i) => saveButtons(i)));
  const score = metricName(scoreOf(trainer)), keys = ["results.model", ...progressKeys];
  $("train-table").replaceChildren(make("caption", { class: "skip" }, t("train.progress")),
    make("thead", {}, make("tr", {}, ...keys.map(key => make("th", { scope: "col" }, ...rich(key, { score }))))), make("tbody", {}, ...progressRows.map(({ row }) => row)));
  const metrics = ["loss", ...(scoreOf(trainer) === "loss" ? [] : [scoreOf(trainer)])], hosts = metrics.map(() => make("div"));
  $("train-curves").replaceChildren(...hosts);
  redrawLiveCurves = hosts.map((host, i) => figure(host, (svg, width) => drawCurves(svg, width, training.live, metrics[i])));
}

// Whole texts, so that nothing is drawn that stays the same.
function showProgress() {
  const { trainer, live, isBehind } = training, isRunning = phaseOf(training) === "running";
  $("train-save").hidden = !live.length || isRunning;
  progressRows.forEach(({ cells }, i) => {
    const state = trainer.states[i];
    if (!state) return;
    const { loss, evaluations } = trainer.histories[i], valid = evaluations.at(-1), number = (value, digits) => Number.isFinite(value) ? fixed(value, digits) : "–";
    const values = { "train.step_number": count(state.step), "train.loss": number(loss, 4), "train.valid_loss": number(valid && valid.loss, 4),
                     "train.score": number(valid && valid[scoreOf(trainer)], 4), "train.answer": isBehind || !live.length ? "…" : shortAnswer(readingOf(live[i])),
                     "train.milliseconds": number(state.time, 1), "train.checksum": isRunning ? "…" : state.checksum };
    for (const [key, value] of Object.entries(values)) if (cells[key].textContent !== value) cells[key].textContent = value;
  });
}

// The claims of the configs, red until they hold.
function showLiveProbes() {
  training.live.forEach(checkProbes);
  const all = training.live.flatMap((r, i) => data.runs[r].probes.map(probe => ({ ...probe, model: training.models[i].name })));
  $("train-probes").hidden = !all.length;
  $("train-probes").replaceChildren(...all.map(({ error, name, model, passes, findings, expect }) => make("li", {},
    verdict([{}], () => passes, "probes.pass", "probes.fail"), " ", error || make("b", {}, name), " ",
    make("span", { class: "soft" }, error ? model : `${expect}: ${findings[0].measured} (${model})`))));
}

// The link to a model, as text and, where it is allowed, in the clipboard.
function showLink(i) {
  const { trainer, models, changed } = training, { step, checksum } = trainer.states[i], isShort = JSON.stringify(changed).length <= mostLinkedData;
  $("train-link").hidden = !isShort;
  $("train-link-state").textContent = isShort ? "" : t("link.data_too_long");
  if (!isShort) return;
  $("train-link").value = linkTo({ config: models[i].config, steps: step, checksum, files: changed });
  $("train-link").select();
  if (navigator.clipboard) navigator.clipboard.writeText($("train-link").value).then(() => { $("train-link-state").textContent = t("link.copied"); }, () => {});
}

// Figures that follow a training: a section, and what draws it. A frame redraws those in view that were drawn longest ago, as many
// as its time allows; what is slow rests longer, up to a second, and states that come meanwhile are left out.
const followers = [["train-progress", showProgress], ["train-curves", () => redrawLiveCurves.forEach(redraw => redraw())], ["answers", () => { showSummary(); showAnswers(); }], ["attention", showAttention],
                   ["why", showWhy], ["embeddings", () => showEmbedding()], ["training", () => redrawCurves()], ["train-claims", showLiveProbes], ["probes", () => { training.live.forEach(checkProbes); showProbes(); }], ["weights", () => showWeights()]]
  .map(([id, draw]) => ({ id, draw, at: 0, cost: 0, state: null, isInView: false }));
const restOf = ({ cost }) => Math.min(cost > frameBudget ? 20 * cost : 3 * cost, 1000);

// Models that need every core get them: then a frame follows another after a rest, and draws more.
const isCrowded = () => phaseOf(training) === "running" && training.speed === Infinity && training.models.length >= navigator.hardwareConcurrency;
const crowdedRest = 250;  // ms

let asked = null, drawnAt = 0;
function askForFrame() {
  if (asked !== null) return;
  const rest = isCrowded() && !training.isBehind ? drawnAt + crowdedRest - performance.now() : 0;
  asked = setTimeout(() => requestAnimationFrame(() => {
    asked = null;
    drawnAt = performance.now();
    if (training.isBehind) drawFirst();
    else if (training.live.length) drawFollowers(isCrowded() ? 5 * frameBudget : frameBudget);
    else showProgress();
  }), rest);
}
// The metrics of models that the page does not show yet: it is drawn anew after them, as this takes time.
function drawFirst() {
  showProgress();
  training.trainer.drawn();
  setTimeout(drawLivePage);
}
function drawFollowers(budget) {
  const { trainer, live } = training, begin = performance.now(), isRunning = phaseOf(training) === "running";
  const shown = follower => follower.id.startsWith("train") || shownRuns().some(r => live.includes(r));
  const behind = followers.filter(follower => follower.isInView && follower.state !== trainer.states && shown(follower));
  for (const follower of behind.sort((a, b) => a.at - b.at)) {
    const now = performance.now();
    if (now - begin > budget) break;
    if (isRunning && now - follower.at < restOf(follower)) continue;
    follower.draw();
    Object.assign(follower, { at: performance.now(), cost: performance.now() - now, state: trainer.states });
  }
  trainer.drawn();
  if (behind.some(({ state: drawn }) => drawn !== trainer.states)) askForFrame();
}
function watchFollowers() {
  const observer = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) followers.find(({ id }) => id === target.id).isInView = isIntersecting;
    askForFrame();
  });
  for (const { id } of followers) observer.observe($(id));
}
