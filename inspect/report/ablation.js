// Ablation: what each head and feed-forward block does to the answer about the typed text, by zero ablation as in `qkv ablate`.

const settled = 150, slice = 12;  // ms without another change until it is computed, and between which the page answers

// The loss of an answer that was given before: of the output tokens, or of the most probable choice for a token.
function answerLoss(live, answer) {
  const { task, model, sentence } = live, x = model.contextual(sentence.ids);
  if (live.translation) return task.outputLoss(model, x, live.translation.kept);
  return -Math.log(task.answer(model, sentence, x, answer.index).probabilities[answer.best]);
}

// What an ablation is about: { key, name, answer }, the first answer of a run or the one about the chosen word; null where
// nothing is answered, yet or at all, or can be ablated.
function askedOf(r) {
  const live = liveOf(r);
  if (!live || live.error || isWriting(live) || live.task.kind === "static-embedding" || !live.model.components.length) return null;
  const answers = answersOf(live), chosen = answers.find(a => a.index === state.word) || answers[0];
  if (!chosen && !live.translation) return null;
  const answer = chosen ? { index: chosen.index, best: argmax(chosen.probabilities) } : null;
  return { key: `${live.key} ${chosen && chosen.index}`, answer, name: chosen ? shownToken(chosen.choices[answer.best]) : live.translation.text };
}

// Yields after each component's change of the loss, and returns { key, name, changes: { component, change }[] }.
function* ablation(r, { key, name, answer }) {
  const live = liveOf(r), before = live.model.changes, whole = answerLoss(live, answer), changes = [];
  for (const component of live.model.components) {
    live.model.changes = { ...before, off: component.id };
    changes.push({ component, change: answerLoss(live, answer) - whole });
    Object.assign(live.model, { changes: before, attentions: [] });
    yield;
  }
  return { key, name, changes };
}

function finished(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

function drawAblation(svg, width) {
  const ink = colours(), { name, changes } = ablated, most = d3.max(changes, d => Math.abs(d.change)) || 1;
  const rows = [...new Set(changes.map(d => d.component.row))], last = column => column === "feed-forward";
  const columns = [...new Set(changes.map(d => d.component.column))].sort((a, b) => last(a) - last(b));
  const left = 16 + d3.max(rows, row => row.length) * 8, top = 88, cell = Math.max(Math.min((width - left - 24) / columns.length, 64), 22), height = 34;
  const shade = change => ink.signed((change / most + 1) / 2), x = d => left + columns.indexOf(d.component.column) * cell;
  const y = d => top + rows.indexOf(d.component.row) * height;
  svg.append("g").attr("class", "cells").selectAll("rect").data(changes).join("rect").attr("x", x).attr("y", y).attr("width", cell - 2).attr("height", height - 2)
    .attr("rx", 3).attr("fill", d => shade(d.change)).append("title").text(d => `${d.component.id}: loss ${d.change >= 0 ? "+" : ""}${d.change.toFixed(4)} without it`);
  if (cell >= 36)
    svg.append("g").attr("text-anchor", "middle").attr("font-size", 12).attr("pointer-events", "none").selectAll("text").data(changes).join("text")
      .attr("x", d => x(d) + (cell - 2) / 2).attr("y", d => y(d) + height / 2 + 3).attr("fill", d => inkOn(shade(d.change))).text(d => d.change.toFixed(2));
  svg.append("g").attr("text-anchor", "end").attr("fill", ink.soft).selectAll("text").data(rows).join("text").attr("x", left - 8)
    .attr("y", (_, i) => top + (i + 0.5) * height).attr("dy", "0.35em").text(row => row);
  svg.append("g").attr("fill", ink.soft).selectAll("text").data(columns).join("text")
    .attr("transform", (_, i) => `translate(${left + (i + 0.5) * cell},${top - 8}) rotate(-50)`).text(column => column);
  onClick(svg, (mx, my) => {
    const row = rows[Math.floor((my - top) / height)], column = columns[Math.floor((mx - left) / cell)];
    const hit = changes.find(d => d.component.row === row && d.component.column === column);
    if (hit && hit.component.head !== undefined) choose({ map: hit.component.map, layer: hit.component.layer, head: hit.component.head });
  });
  const order = changes.slice().sort((a, b) => b.change - a.change), first = order[0].component, step = run().stops[state.stop];
  return { height: top + rows.length * height + 6, width: Math.max(width, left + columns.length * cell + 40), file: `ablation step ${step.step}`,
    title: `Change of the loss of “${name.length > 40 ? name.slice(0, 39) + "…" : name}” without each component`,
    description: `Most is lost without ${first.row}, ${first.column}: ${order[0].change.toFixed(4)}.` };
}

let redrawAblation, waiting = null, ablated = null;

// Computed when the reader pauses and in slices, since it takes a forward pass for each component.
function showAblation() {
  clearTimeout(waiting);
  const asked = askedOf(state.run);
  $("ablation").hidden = !asked || !ablated;
  if (!asked) return;
  if (ablated && ablated.key === asked.key && ablated.run === state.run) {
    redrawAblation();
    return;
  }
  const r = state.run, steps = ablation(r, asked);
  const work = () => {
    for (const end = performance.now() + slice; performance.now() < end;) {
      const { done, value } = steps.next();
      if (!done) continue;
      ablated = { run: r, ...value };
      $("ablation").hidden = false;
      redrawAblation();
      return;
    }
    waiting = setTimeout(work, 0);
  };
  waiting = setTimeout(work, settled);
}
