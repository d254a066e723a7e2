// The data files that a model is trained on in the page, and their edits: small ones as text, large ones by line, found by search.

const smallFile = 20000, mostLines = 30;  // characters up to which a file is shown whole; lines that are shown at once

class DataFiles {
  // `files`: { path: text }. Reads a file as lines when it is edited. `shown`: the file in the editor, and the search in it.
  constructor(files) { Object.assign(this, { files, edited: new Map(), shown: { path: Object.keys(files)[0], search: "" } }); }
  get paths() { return Object.keys(this.files); }
  isEdited(path) { return this.edited.has(path) && this.text(path) !== this.files[path]; }
  text(path) { return this.edited.has(path) ? this.edited.get(path).join("\n") : this.files[path]; }
  get texts() { return Object.fromEntries(this.paths.map(path => [path, this.text(path)])); }
  get changed() { return this.paths.filter(path => this.isEdited(path)); }
  lines(path) { return memo(this.edited, path, () => this.files[path].split("\n")); }
  set(path, text) { this.edited.set(path, text.split("\n")); }
  undo(path) { this.edited.delete(path); }
  // Lines with the words of a search, as their numbers; without one the last ones, where new lines are.
  found(path, search) {
    const lines = this.lines(path), words = search.toLowerCase().split(/\s+/).filter(Boolean), numbers = [];
    if (!words.length) return d3.range(lines.length).filter(i => lines[i]).reverse();
    lines.forEach((line, i) => {
      const lower = line.toLowerCase();
      if (line && words.every(word => lower.includes(word))) numbers.push(i);
    });
    return numbers;
  }
  // Adds a line before the line break at the end of the file.
  add(path, line) {
    const lines = this.lines(path);
    lines.splice(lines.length && !lines[lines.length - 1] ? lines.length - 1 : lines.length, 0, line);
  }
}

// The columns of a line as boxes, as wide as their texts; `change` is called with the line after an edit.
function lineFields(columns, name, widths, change) {
  const widthOf = i => Math.min(Math.max(widths[i] || 0, 5), 40), style = i => `flex:${widthOf(i)} 1 min(100%, ${Math.min(widthOf(i) + 3, 26)}ch)`;
  const inputs = columns.map((column, i) => make("input", { value: column, "aria-label": `${name}, ${t("sentences.column", { n: i + 1 })}`, spellcheck: "false", autocomplete: "off", style: style(i) }));
  const line = () => inputs.map(input => input.value).join("\t");
  for (const input of inputs) input.addEventListener("change", () => change(line()));
  return { inputs, line };
}

function lineElement(source, path, i, widths, show, changed) {
  const name = t("sentences.line", { n: i + 1 }), { inputs } = lineFields(source.lines(path)[i].split("\t"), name, widths, line => {
    source.lines(path)[i] = line;
    changed();
  });
  const remove = make("button", { type: "button", class: "quiet", "aria-label": `${t("sentences.remove")}: ${name}` }, t("sentences.remove"));
  remove.addEventListener("click", () => {
    source.lines(path).splice(i, 1);
    changed();
    show();
  });
  return make("li", { class: "line" }, ...inputs, remove);
}

// A search, the lines that it finds, and a new line.
function lineEditor(source, path, changed) {
  const search = make("input", { type: "search", id: "sentences-search", value: source.shown.search, autocomplete: "off", placeholder: t("sentences.search"), "aria-label": t("sentences.search") });
  const count = make("p", { class: "soft", role: "status" }), list = make("ul", { class: "lines", id: "sentences-lines" });
  const show = () => {
    const found = source.found(path, search.value);
    count.textContent = t(found.length > mostLines ? "sentences.found_first" : "sentences.found", { n: found.length, shown: mostLines });
    list.replaceChildren(...found.slice(0, mostLines).map(i => lineElement(source, path, i, widths, show, changed)));
  };
  const columns = source.lines(path).slice(0, mostLines).map(row => row.split("\t")), [first] = columns;
  const widths = first.map((_, i) => d3.max(columns, row => (row[i] || "").length));
  const { inputs, line } = lineFields(first.map(() => ""), t("sentences.new"), widths, () => {});
  first.forEach((column, i) => { inputs[i].placeholder = column; });
  const add = make("button", { type: "submit", class: "quiet" }, t("sentences.add")), form = make("form", { class: "line", id: "sentences-new" }, ...inputs, add);
  form.addEventListener("submit", event => {
    event.preventDefault();
    source.add(path, line());
    for (const input of inputs) input.value = "";
    changed();
    show();
  });
  search.addEventListener("input", () => {
    source.shown.search = search.value;
    show();
  });
  show();
  return [search, count, list, make("h4", {}, t("sentences.new")), form];
}

function textEditor(source, path, changed) {
  const box = make("textarea", { rows: 12, id: "sentences-text", spellcheck: "false", "aria-label": path, class: "mono" });
  box.value = source.text(path);
  box.addEventListener("input", () => {
    source.set(path, box.value);
    changed();
  });
  return [box];
}

// Fills `host` with the editor of the file that is shown; `changed` is called after each edit.
function showSentences(host, source, changed) {
  const { path } = source.shown, again = other => {
    source.shown = { path: other, search: "" };
    showSentences(host, source, changed);
  };
  const undo = make("button", { type: "button", class: "quiet", id: "sentences-undo" }, t("sentences.undo"));
  const note = () => { undo.disabled = !source.isEdited(path); };
  const noted = () => {
    note();
    changed();
  };
  undo.addEventListener("click", () => {
    source.undo(path);
    changed();
    again(path);
  });
  const files = menu("sentences-file", t("sentences.file"), source.paths.map(name => [name, name]), path, again, true);
  host.replaceChildren(make("div", { class: "controls" }, files, undo), ...(source.files[path].length <= smallFile ? textEditor : lineEditor)(source, path, noted));
  note();
}
