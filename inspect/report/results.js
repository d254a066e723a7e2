// The results: sizes of the data, the table of test results, and probes.

function fact(name, value) {
  return make("div", {}, make("dt", {}, ...name), make("dd", {}, value));
}

// Models that learn in the page have no results on the test data.
const recordedRuns = () => data.runs.filter(run => !run.live);

function showFacts() {
  const sizes = run().data, models = recordedRuns().length;
  const steps = d3.max(recordedRuns().flatMap(seedsOf).flatMap(seed => seed.metrics), event => event.step);
  const facts = [];
  if (sizes.train !== undefined) facts.push(["facts.train", count(sizes.train)], ["facts.held_back", `${count(sizes.valid)} + ${count(sizes.test)}`]);
  facts.push(["facts.vocabulary", count(sizes.vocabulary)]);
  if (sizes.labels && sizes.labels.length <= 6) facts.push(["facts.labels", sizes.labels.join(", ")]);
  if (steps) facts.push(["facts.steps", count(steps)]);
  facts.push(models > 1 ? ["facts.models", count(models)] : ["facts.parameters", count(run().parameters)]);
  $("facts").replaceChildren(...facts.map(([key, value]) => fact(rich(key), value)));
}

// "0.9925", of several seeds "0.9925 ± 0.0050", of none "–".
function meanOf(values, digits) {
  const found = values.filter(Number.isFinite), deviation = d3.deviation(found);
  if (!found.length) return "–";
  return make("span", {}, fixed(d3.mean(found), digits), deviation === undefined ? "" : make("span", { class: "spread" }, ` ± ${fixed(deviation, digits)}`));
}
const testValues = (run, key) => seedsOf(run).map(({ test }) => test ? test[key] : undefined).filter(Number.isFinite);

function bestSteps(run) {
  const [least, most] = d3.extent(seedsOf(run).map(seed => seed.best_step).filter(step => step !== null));
  return least === undefined ? "–" : least === most ? count(least) : `${count(least)} – ${count(most)}`;
}

const runHeader = (run, i) => make("th", { scope: "row" }, make("i", { class: "dot", style: `background:${colourOf(i)}` }), run.name,
  run.others.length ? make("span", { class: "spread" }, ` ${t("results.seeds", { n: seedsOf(run).length })}`) : "");

function showResults() {
  const runs = recordedRuns(), keys = [...new Set(runs.flatMap(seedsOf).flatMap(({ test }) => test ? metricsOf([test]) : []))];
  const smaller = key => ["loss", "log_loss", "calibration_error", "perplexity", "bits_per_token"].includes(key), average = (run, key) => d3.mean(testValues(run, key));
  const best = Object.fromEntries(keys.map(key => [key, (smaller(key) ? d3.min : d3.max)(runs, run => average(run, key))]));
  const testName = key => t("results.test", { metric: metricName(key) });
  const others = [["results.parameters", run => count(run.parameters)], ["results.best_step", bestSteps],
                  ["results.seconds", run => meanOf(seedsOf(run).map(seed => seed.seconds), 1)]];
  const head = make("tr", {}, ...[rich("results.model"), ...keys.map(key => rich("results.test", { metric: metricTerm(key) })),
    ...others.map(([key]) => rich(key))].map(parts => make("th", { scope: "col" }, ...parts)));
  const rows = runs.map((run, i) => make("tr", {}, runHeader(run, i),
    ...keys.map(key => make("td", { class: runs.length > 1 && data.same_data && average(run, key) === best[key] && "best", "data-name": testName(key) },
      meanOf(testValues(run, key), 4))),
    ...others.map(([key, value]) => make("td", { "data-name": t(key) }, value(run)))));
  $("results-lead").replaceChildren(...rich(keys.length ? "results.lead" : "results.none"));
  $("results-terms").replaceChildren(...keys.flatMap((key, i) => [i ? ", " : "", metricTerm(key)]));
  const caption = make("caption", { class: "skip" }, t(keys.length ? "results.table" : "results.models"));
  $("results-table").replaceChildren(caption, make("thead", {}, head), make("tbody", {}, ...rows));
}

// Whether something is so, by the keys of two texts; of several seeds, in how many.
function verdict(seeds, good, yes, no) {
  const right = seeds.filter(good).length, all = seeds.length;
  return make("span", { class: right === all ? "verdict pass" : "verdict fail" }, all === 1 ? t(right ? yes : no) : t("probes.of_seeds", { verdict: t(yes), right, all }));
}
const interventionName = after => `intervention.${after}` in texts[language] ? t(`intervention.${after}`) : after;

// The claims of the configs, and whether they hold and their interventions break them.
function showProbes() {
  const all = data.runs.flatMap((run, i) => run.probes.map((_, j) => ({ run, i, seeds: seedsOf(run).map(seed => seed.probes[j]) })));
  $("probes").hidden = !all.length;
  const shortened = line => make("span", { title: line }, line.length > 90 ? `${line.slice(0, 89)}…` : line);
  const columns = ["results.model", "probes.claim", "probes.found", "probes.after", "probes.probe"];
  const rows = all.map(({ run, i, seeds }) => {
    const [{ error, name, expect, sentences, findings }] = seeds, model = runHeader(run, i);
    if (error) return make("tr", {}, model, make("td", { colspan: 3, class: "text" }, error));
    // The finding of each seed; measured values where there is one seed alone.
    const found = (j, good, yes, no) => [...(seeds.length === 1 ? [shortened(findings[j].measured), " "] : []),
      verdict(seeds, seed => good(seed.findings[j].holds), yes, no)];
    const cell = (key, ...children) => make("td", { class: "text", "data-name": t(key) }, make("span", {}, ...children));
    return make("tr", {}, model,
      cell("probes.claim", make("b", {}, name), make("br"), make("code", { title: sentences.join("\n") }, expect)),
      cell("probes.found", ...found(0, holds => holds, "probes.holds", "probes.does_not_hold")),
      cell("probes.after", findings.length > 1 ? "" : "–", ...findings.slice(1).map(({ after }, j) => make("span", { class: "after" }, `${interventionName(after)}: `,
        make("span", { class: "soft" }, ...found(j + 1, holds => !holds, "probes.broken", "probes.still_holds"))))),
      make("td", { "data-name": t("probes.probe") }, verdict(seeds, seed => seed.passes, "probes.pass", "probes.fail")));
  });
  $("probes-table").replaceChildren(make("caption", { class: "skip" }, t("probes.title")), make("thead", {}, make("tr", {},
    ...columns.map(key => make("th", { scope: "col" }, ...rich(key))))), make("tbody", {}, ...rows));
}
