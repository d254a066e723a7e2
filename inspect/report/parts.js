// The parts of every figure: data, colours, controls, and figures that can be saved.

const $ = id => document.getElementById(id);
function bytesOf(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// A JSON document, 0, and the weights of the models.
const dataBytes = await unpacked($("data").textContent), weightBytes = dataBytes.subarray(dataBytes.indexOf(0) + 1);
const data = JSON.parse(new TextDecoder().decode(dataBytes.subarray(0, dataBytes.indexOf(0))));
// Runs with the same points, vocabulary and data share them.
for (const run of data.runs) {
  if (!Array.isArray(run.points)) run.points = data.runs[run.points].points;
  if (typeof run.model.vocabulary === "number") run.model.vocabulary = data.runs[run.model.vocabulary].model.vocabulary;
  if (run.training) run.training.files = Object.fromEntries(run.training.files.map(path => [path, data.files[path]]));
}
// Runs of one name, such as those of different data, are told apart by their folders.
const sameNames = data.runs.filter((run, i) => data.runs.some((other, j) => j !== i && other.name === run.name));
for (const run of sameNames) run.name += ` (${run.folder})`;

// A section and the link to it.
function showSection(id, shown) {
  for (const element of [$(id), document.querySelector(`nav a[href="#${id}"]`)]) element.hidden = !shown;
}

// The visitor's choices; `choose` changes them and redraws what depends on them. `word` and `key`: tokens that attend and are attended to;
// `beside`: a second run; `changes`: interventions, as of `Engine`.
const state = { run: 0, beside: null, text: "", map: "self", layer: 0, head: "mean", stop: 0, word: 0, key: 0,
                changes: { uniform: false, shuffled: false, without_positions: false, off: "" } };
const run = () => data.runs[state.run];
// The outcomes of a run and of those that differ from it in their seeds.
const seedsOf = run => [run, ...run.others];
// The checkpoint of a run that is most like one of another run: its best one too, else the latest that is not after it.
function stopLike(r, { step, note }) {
  const { stops } = data.runs[r], best = stops.findIndex(stop => stop.note === "best");
  return note === "best" && best >= 0 ? best : Math.max(d3.bisector(stop => stop.step).right(stops, step) - 1, 0);
}

// The value of a Map under a key, computed where it has none.
const memo = (cache, key, compute) => {
  if (!cache.has(key)) cache.set(key, compute());
  return cache.get(key);
};

// The index of the item with the largest value, the first of equals.
const argmax = (items, value = x => x) => items.reduce((best, item, i) => value(item) > value(items[best]) ? i : best, 0);

// Calls `act(x, y)` with the position of each click in the units of an SVG.
function onClick(svg, act) {
  svg.node().onclick = ({ clientX, clientY }) => {
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(svg.node().getScreenCTM().inverse());
    act(x, y);
  };
}

// A new element: make("button", { type: "button" }, "Save"). Strings become text, never markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  element.append(...children);
  return element;
}

const isDark = () => document.documentElement.dataset.theme === "dark";
const font = "-apple-system, BlinkMacSystemFont, 'Segoe UI', Inter, Roboto, Helvetica, Arial, sans-serif";
// Colours of the theme. Zero has the colour of the paper in every map: white, and in the dark the figure's background.
// `shade`: of weights from 0 to 1, of which the small ones differ most; `signed`: from -1, blue, to 1, red.
function themeOf(paper, ink, soft, line, shades, blues, reds) {
  const ramp = colours => d3.interpolateRgbBasis([paper, ...colours]), shade = ramp(shades), below = ramp(blues), above = ramp(reds);
  return { paper, ink, soft, line, shade: weight => shade(weight ** 0.7), signed: value => value < 0 ? below(-value) : above(value) };
}
const themes = {
  light: themeOf("#ffffff", "#1d1d1f", "#6e6e73", "#e3e3e8", ["#c7d2fe", "#818cf8", "#4338ca", "#1e1b4b"], ["#93c5fd", "#3b82f6", "#1e40af"], ["#fca5a5", "#ef4444", "#991b1b"]),
  dark: themeOf("#17181e", "#f2f2f5", "#a0a0aa", "#2c2d36", ["#312e81", "#6366f1", "#a5b4fc", "#eef2ff"], ["#1e3a8a", "#2563eb", "#93c5fd"], ["#7f1d1d", "#dc2626", "#fca5a5"]),
};
const colours = () => themes[isDark() ? "dark" : "light"];
// Distinguishable for people with colour-blindness, on light and on dark paper.
const palette = ["#4e79d8", "#e8871e", "#2f9e6e", "#d6568f", "#8b6fd6", "#b08a1e", "#3aa6b9", "#c4553b"];
function colourOf(i) {
  const colour = d3.color(palette[i % palette.length]), round = Math.floor(i / palette.length) % 4;
  return [colour, colour.darker(1.2), colour.brighter(0.8), colour.darker(2.2)][round].toString();
}
// The ink with more contrast on `background`.
const inkOn = background => d3.lab(background).l > 52 ? "#1d1d1f" : "#ffffff";

// A token with its white space visible, as the program shows it.
const shownToken = token => token.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "·");

// Recorded weights, of their square roots.
const sharesOf = base64 => Float32Array.from(bytesOf(base64), v => (v / 255) ** 2);

// A group of radio buttons under a rich text. choices: [value, text][]; `chosen` is called with a value.
function segments(group, title, choices, value, chosen) {
  const box = make("div", { class: "segments" });
  for (const [choice, name] of choices) {
    const input = make("input", { type: "radio", name: group, value: choice, checked: choice === value });
    input.addEventListener("change", () => chosen(choice));
    box.append(make("label", {}, input, make("span", {}, name)));
  }
  return make("fieldset", {}, make("legend", {}, ...title), box);
}

function menu(id, title, choices, value, chosen, wide = false) {
  const select = make("select", { id });
  choices.forEach(([choice, name]) => select.append(make("option", { value: choice, selected: choice === value }, name)));
  select.addEventListener("change", () => chosen(choices[select.selectedIndex][0]));
  return make("label", { class: wide ? "field wide" : "field" }, make("span", {}, title), select);
}

function download(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The figure as a document of its own.
function svgText(svg) {
  const copy = svg.cloneNode(true), { width, height } = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ width, height, fill: colours().paper })) paper.setAttribute(name, value);
  copy.insertBefore(paper, copy.querySelector("desc").nextSibling);
  return new XMLSerializer().serializeToString(copy);
}

function savePng(svg, name) {
  const { width, height } = svg.viewBox.baseVal, scale = 3, image = new Image();
  image.onload = () => {
    const canvas = make("canvas", { width: width * scale, height: height * scale });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => download(blob, name));
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText(svg));
}

// A figure in `host` that `draw(svg, width)` fills; returns a function that redraws it. draw
// returns { height, title, description, file } and gives colours as attributes, so that the saved
// figure is complete.
function figure(host, draw) {
  const drawing = make("div", { class: "drawing" }), caption = make("span");
  const button = (name, act) => {
    const element = make("button", { type: "button", class: "quiet" }, name);
    element.addEventListener("click", act);
    return element;
  };
  let file = "picture", width = 0;
  const svg = () => drawing.querySelector("svg");
  const save = make("div", { class: "save" },
    button(t("figure.svg"), () => download(new Blob([svgText(svg())], { type: "image/svg+xml" }), `${file}.svg`)),
    button(t("figure.png"), () => savePng(svg(), `${file}.png`)));
  host.replaceChildren(make("figure", {}, drawing, make("figcaption", {}, caption, save)));
  const room = () => Math.max(drawing.clientWidth, 240);
  // Measured once, and then by the observer: to ask in between would lay the page out for each figure.
  const redraw = () => {
    width = width || room();
    const picture = d3.create("svg").attr("role", "img").attr("font-family", font).attr("font-size", 13);
    const title = picture.append("title"), description = picture.append("desc");
    const drawn = draw(picture, width);
    title.text(drawn.title);
    description.text(drawn.description);
    picture.attr("aria-label", `${drawn.title}. ${drawn.description}`);
    picture.attr("viewBox", `0 0 ${drawn.width || width} ${drawn.height}`).attr("width", drawn.width || width);
    caption.textContent = drawn.title;
    save.setAttribute("role", "group");
    save.setAttribute("aria-label", t("figure.save", { title: drawn.title }));
    file = `${data.name} ${drawn.file}`.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
    drawing.replaceChildren(picture.node());
  };
  // A hidden figure has no width, and its model may have nothing to draw in it.
  new ResizeObserver(() => {
    if (!drawing.clientWidth || room() === width) return;
    width = room();
    redraw();
  }).observe(drawing);
  return redraw;
}
