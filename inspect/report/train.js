// Train here: the engine trains a config of the page, as it stands or edited, beside others if wanted.

// `base`: the run whose config is `config`, edited; `rival`: "", "all" or one of `rivals`; `models`: [{ name, config }] of the trainer;
// `goal`: the steps and checksum of a link; `isBehind`: the page does not show the models yet.
const training = { base: null, config: "", source: null, rival: "", speed: Infinity, trainer: null, models: [], live: [], changed: {}, isStale: false, goal: null, isBehind: false };
const speeds = [1, 5, 25, Infinity];  // steps a frame

const isTrainable = r => Boolean(compiledModule && data.runs[r].training);
const trainable = () => d3.range(data.runs.length).filter(isTrainable);
const phaseOf = ({ trainer }) => trainer ? trainer.phase : "none";
const stepsOf = ({ trainer }) => trainer && trainer.isReady ? trainer.states[0].step : 0;

const isSameData = (a, b) => Object.keys(a).length === Object.keys(b).length && Object.keys(a).every(path => a[path] === b[path]);
// Configs that can learn beside it on the same data: [key, name, config][].
function rivals() {
  const { base, config } = training, { files } = data.runs[base].training, position = optionValue(optionsIn(config)["model.position"]);
  const others = trainable().filter(r => isSameData(data.runs[r].training.files, files)).map(r => [`run ${r}`, data.runs[r].name, data.runs[r].training.config]);
  if (position === undefined || position === "none") return others;
  return [["positions", t("train.without_positions", { name: data.runs[base].name }), withOption(config, "model.position", '"none"')], ...others];
}
const everyRun = () => rivals().filter(([key]) => key.startsWith("run ") && key !== `run ${training.base}`);
function chosenModels() {
  const { base, config, rival } = training, others = rival === "all" ? everyRun() : rivals().filter(([key]) => key === rival);
  return [{ name: data.runs[base].name, config }, ...others.map(([, name, config]) => ({ name, config }))];
}

// Takes the config and the data of a run, without edits.
function chooseBase(base) {
  const { config, files } = data.runs[base].training;
  Object.assign(training, { base, config, source: new DataFiles(files), rival: "" });
}
function edited() {
  training.isStale = training.trainer !== null;
  showTrainState();
}

// A new trainer of the edited configs and data; `first`: what it begins with, "run", "step" or null.
function begin(first = null, goal = null) {
  const { source } = training, models = chosenModels(), files = source.texts, changed = Object.fromEntries(source.changed.map(path => [path, files[path]]));
  if (training.trainer) training.trainer.end();
  Object.assign(training, { models, changed, live: [], isStale: false, goal, isBehind: false });
  const message = first && { kind: first, until: lastStep(), speed: training.speed };
  const trainer = new Trainer(compiledModule, models.map(({ config }) => config), files, message, (i, message) => { if (trainer === training.trainer) heard(i, message); });
  training.trainer = trainer;
  showTrainState();
}
function heard(i, { kind, bytes }) {
  const { trainer, models, live } = training;
  if (kind === "exported") download(new Blob([bytes]), `${fileName(models[i].name)}.safetensors`);
  if (kind === "started" && i === 0) startProgress();
  if (kind === "state" && live.length) takeLiveState(i);
  if (kind === "state" && trainer.isReady && !live.length) addLiveRuns();
  showTrainState();
}
const fileName = name => `${data.name} ${name}`.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");

function takeLiveState(i) {
  const { trainer, live } = training;
  takeState(data.runs[live[i]], trainer.states[i], trainer.histories[i]);
}

const firstLive = () => {
  const first = data.runs.findIndex(run => run.live);
  return first < 0 ? data.runs.length : first;
};
// The models become runs of the page, to be shown beside each other, or beside the run that they were started from.
function addLiveRuns() {
  const { trainer, models, base } = training, known = firstLive(), isFirst = known === data.runs.length;
  data.runs.splice(known);
  models.forEach(({ name }, i) => data.runs.push(liveRun(data.runs[base], t("train.live", { name }), trainer.facts[i], trainer.states[i])));
  training.live = models.map((_, i) => known + i);
  training.live.forEach((r, i) => {
    forgetRun(r);
    knownLists.delete(r);
    liveViews.delete(r);
    takeLiveState(i);
  });
  if (isFirst || state.run >= data.runs.length) state.run = known;
  state.beside = models.length > 1 ? known + 1 : state.beside === null || state.beside >= known || state.beside === state.run ? base : state.beside;
  state.stop = stopLike(state.run, run().stops[0]);
  shownSentence = "";
  for (const name of Object.keys(made)) delete made[name];
  training.isBehind = true;
}
function drawLivePage() {
  if (!training.isBehind) return;
  training.isBehind = false;
  keepFocus(drawPage);
}

const lastStep = () => training.goal ? training.goal.steps : Infinity;
function toggleRun() {
  const { trainer, isStale, speed } = training, phase = phaseOf(training);
  if (phase === "running" && !isStale) trainer.pause();
  else if (phase === "paused" && !isStale) trainer.run(lastStep(), speed);
  else begin("run");
  showTrainState();
}
function takeStep() {
  if (phaseOf(training) === "paused" && !training.isStale) training.trainer.step();
  else begin("step");
}
function chooseSpeed(speed) {
  training.speed = speed;
  if (phaseOf(training) === "running") training.trainer.run(lastStep(), speed);
}

// The buttons and the state of a training, and the promise of a link.
function showTrainState() {
  const { trainer, isStale, goal } = training, phase = phaseOf(training), isRunning = phase === "running" && !isStale;
  $("train-run").textContent = t(isRunning ? "train.pause" : phase === "paused" && !isStale && stepsOf(training) ? "train.continue" : "train.start");
  $("train-run").disabled = phase === "starting";
  $("train-step").disabled = ["running", "starting"].includes(phase);
  $("train-reset").disabled = phase === "none" || phase === "starting";
  const said = [t(`train.state_${phase}`, { step: stepsOf(training) }), isStale ? t("train.stale") : ""].filter(Boolean).join(" ");
  if ($("train-state").textContent !== said) $("train-state").textContent = said;
  $("train-error").textContent = phase === "failed" ? trainer.message : "";
  if (goal && ["paused", "finished"].includes(phase) && (phase === "finished" || stepsOf(training) >= goal.steps)) showGoal();
  askForFrame();
}
function showGoal() {
  const { goal, trainer } = training, [{ step, checksum }] = trainer.states;
  $("train-link-state").textContent = t(checksum === goal.checksum ? "link.agrees" : "link.differs", { step, checksum, promised: goal.checksum });
  training.goal = null;
}

function startModels() {
  const bases = trainable().map(r => [r, data.runs[r].name]), none = ["", t("try.no_other")], all = ["all", t("train.all")];
  $("train-models").replaceChildren(menu("train-base", t("train.base"), bases, training.base, r => { chooseBase(r); startModels(); edited(); }, true),
    menu("train-rival", t("train.rival"), [none, ...(everyRun().length > 1 ? [all] : []), ...rivals()], training.rival, key => { training.rival = key; edited(); }, true));
  showOptions();
  showSentences($("sentences-editor"), training.source, edited);
}
function startButtons() {
  const button = (id, text, act) => {
    const element = make("button", { type: "button", id, class: "quiet" }, text);
    element.addEventListener("click", act);
    return element;
  };
  const names = speeds.map(speed => [speed, Number.isFinite(speed) ? count(speed) : t("train.fastest")]);
  $("train-buttons").replaceChildren(button("train-run", "", toggleRun), button("train-step", t("train.step"), takeStep), button("train-reset", t("train.reset"), () => begin()),
    segments("train-speed", rich("train.speed"), names, training.speed, chooseSpeed));
  $("train-run").classList.add("main");
}

// The config as text, and the form of some of its options.
function showOptions() {
  $("option-fields").replaceChildren(...optionFields(training.config, (key, value) => {
    training.config = withOption(training.config, key, value);
    $("train-config").value = training.config;
    edited();
  }));
  $("train-config").value = training.config;
}
function startTrain() {
  showSection("train", trainable().length);
  if (!trainable().length) return;
  if (training.base === null) chooseBase(isTrainable(data.main) ? data.main : trainable()[0]);
  startButtons();
  startModels();
  $("train-config").oninput = () => {
    training.config = $("train-config").value;
    edited();
  };
  $("train-config").onchange = showOptions;
  startProgress();
  showTrainState();
}

// A page that is opened with a link trains its model.
function openLink() {
  const linked = linkedModel(location.hash);
  if (!linked || !trainable().length) return;
  $("train").scrollIntoView();
  $("train-link-state").textContent = t(linked.error || "link.training", linked.error ? {} : { step: linked.steps });
  if (linked.error) return;
  chooseBase(training.base);
  Object.assign(training, { config: linked.config, source: new DataFiles({ ...training.source.files, ...linked.files }) });
  startModels();
  begin("run", linked);
}
