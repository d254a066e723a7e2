// A vector as a strip of coloured cells. A cell's value shows under the mouse or a finger; with the focus, arrow keys go from
// cell to cell, and up and down from strip to strip.

const mostNumbers = 16;  // cells up to which each has its value written in it, where there is room

// { name, values, most }: what is read out, and the value of the deepest colour.
function strip({ name, label, values, most }) {
  const ink = colours(), colour = v => ink.signed(Math.max(-1, Math.min(v / most, 1))), n = values.length;
  const box = make("div", { class: "strip", role: "slider", tabindex: -1, "aria-label": name, "aria-valuemin": 0, "aria-valuemax": n - 1 });
  if (n <= mostNumbers) box.append(...Array.from(values, v => {
    const cell = make("i", {}, make("b", {}, cellText(v)));
    cell.style.background = colour(v);
    cell.style.color = inkOn(colour(v));
    return cell;
  }));
  else box.style.background = `linear-gradient(90deg, ${Array.from(values, (v, d) => `${colour(v)} ${100 * d / n}% ${100 * (d + 1) / n}%`).join(", ")})`;
  box.style.maxWidth = `${n * 2.9}rem`;
  box.values = values;
  showCell(box, 0);
  return make("div", { class: "vector" }, make("span", { class: "vector-name" }, ...label), box);
}
const strips = list => {
  const elements = list.map(strip);
  if (elements.length) elements[0].querySelector(".strip").tabIndex = 0;
  return elements;
};

function showCell(box, d) {
  box.at = Math.max(0, Math.min(d, box.values.length - 1));
  box.setAttribute("aria-valuenow", box.at);
  box.setAttribute("aria-valuetext", t("strip.element", { d: box.at, value: fixed(box.values[box.at], 4) }));
}
// The value of a cell above its strip.
function showValue(box, d) {
  showCell(box, d);
  hideValue();
  const bubble = make("span", { class: "value", "aria-hidden": "true" }, box.getAttribute("aria-valuetext")), { length } = box.values;
  bubble.style.left = `${100 * (box.at + 0.5) / length}%`;
  bubble.style.transform = `translateX(-${100 * (box.at + 0.5) / length}%)`;
  box.append(bubble);
}
const hideValue = () => document.querySelectorAll(".strip .value").forEach(bubble => bubble.remove());

// Strips in `host` answer to mouse, fingers and keys.
function watchStrips(host) {
  const stripOf = event => event.target.closest(".strip");
  const point = event => {
    const box = stripOf(event);
    if (!box) return hideValue();
    const { left, width } = box.getBoundingClientRect();
    showValue(box, Math.floor((event.clientX - left) / width * box.values.length));
  };
  host.addEventListener("pointermove", point);
  host.addEventListener("pointerdown", point);
  host.addEventListener("pointerleave", hideValue);
  host.addEventListener("focusin", event => stripOf(event) && showValue(stripOf(event), stripOf(event).at));
  host.addEventListener("focusout", hideValue);
  host.addEventListener("keydown", event => {
    const box = stripOf(event), step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key], line = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!box || step === undefined && line === undefined) return;
    event.preventDefault();
    if (step !== undefined) return showValue(box, box.at + step);
    const all = [...box.closest(".vectors").querySelectorAll(".strip")], next = all[all.indexOf(box) + line];
    if (!next) return;
    Object.assign(next, { at: box.at, tabIndex: 0 }).focus();
    box.tabIndex = -1;
  });
}
