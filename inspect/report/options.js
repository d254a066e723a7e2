// Options of a config: its TOML text, of which a form edits the options that are changed most. Names, choices and explanations are
// those of the text, in which `qkv train` writes each option as: key = value  # explanation; choice: explanation, choice: ...

const shownOptions = ["model.heads", "model.layers", "model.width", "model.feed_forward", "model.attention", "model.position", "model.scale",
                      "optimizer.kind", "optimizer.lr", "train.batch", "train.steps", "seed"];

// { key: { line, name, value, comment } }; `value` as TOML. Options of arrays of tables, [[probe]], are left out.
function optionsIn(toml) {
  const options = {};
  let table = "";
  toml.split("\n").forEach((text, line) => {
    const header = text.match(/^\s*\[(\[?)([^\]]*)\]/), option = text.match(/^\s*([\w.-]+)\s*=\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'#])*)(#.*)?$/);
    if (header) table = header[1] ? null : header[2].trim();
    else if (option && table !== null) options[table ? `${table}.${option[1]}` : option[1]] = { line, name: option[1], value: option[2].trim(), comment: option[3] || "" };
  });
  return options;
}
// The value of an option as text, number or boolean; undefined where the text has none.
function optionValue({ value } = {}) {
  try {
    return value === undefined ? undefined : JSON.parse(value);
  } catch {
    return value;  // the engine says what is wrong with it
  }
}

// The text with another value, in TOML, of an option.
function withOption(toml, key, value) {
  const found = optionsIn(toml)[key], lines = toml.split("\n"), dot = key.lastIndexOf(".");
  if (found) lines[found.line] = `${found.name} = ${value}${found.comment && "  "}${found.comment}`;
  else if (dot < 0) lines.unshift(`${key} = ${value}`);
  else {
    const header = `[${key.slice(0, dot)}]`, at = lines.findIndex(line => line.trim().startsWith(header));
    if (at < 0) lines.push(header);
    lines.splice(at < 0 ? lines.length : at + 1, 0, `${key.slice(dot + 1)} = ${value}`);
  }
  return lines.join("\n");
}
const withoutComments = toml => toml.split("\n").map(line => line.replace(/^((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'#])*)#.*$/, "$1").trimEnd()).join("\n");

// Choices that an option's explanation names.
function choicesOf({ value, comment }) {
  if (value === "true" || value === "false") return ["true", "false"];
  const at = comment.indexOf("; ");
  return at < 0 || !value.startsWith('"') ? [] : [...comment.slice(at + 2).matchAll(/(?:^|, )([\w-]+): /g)].map(([, choice]) => choice);
}

// The form of a text. `change` is called with the text after an edit.
function optionFields(toml, change) {
  const options = optionsIn(toml), shown = shownOptions.filter(key => options[key]);
  return shown.map(key => {
    const option = options[key], choices = choicesOf(option), isText = option.value.startsWith('"'), value = String(optionValue(option));
    const field = choices.length ? make("select", { id: `option ${key}` }, ...choices.map(choice => make("option", { value: choice, selected: choice === value }, choice)))
      : make("input", { id: `option ${key}`, inputmode: isText ? "text" : "decimal", autocomplete: "off", spellcheck: "false", value });
    field.addEventListener("change", () => change(key, isText ? JSON.stringify(field.value) : field.value));
    return make("label", { class: "field", title: option.comment.replace(/^#\s*/, "") }, make("span", {}, make("code", {}, key)), field);
  });
}
