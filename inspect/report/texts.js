// The texts of the page, a table a language; numbers in a language's format; terms with a word of explanation.

let language = navigator.languages.map(tag => tag.split("-")[0]).find(tag => tag in texts) || "en";

const valueText = value => typeof value === "number" ? count(value) : value;
const withValues = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => valueText(values[name]));
// The text of a key with its placeholders, as {n}, filled in.
const t = (key, values = {}) => withValues(texts[language][key].replace(/\[([^\]]+)\]\(\w+\)/g, "$1"), values);
// A text as nodes: "[heads](head)" in a text becomes the term "head" with its explanation. Values may be nodes, too.
const rich = (key, values = {}) => texts[language][key].split(/(\[[^\]]+\]\(\w+\)|\{\w+\})/).map(part => {
  const found = part.match(/^\[([^\]]+)\]\((\w+)\)$/), [, name] = part.match(/^\{(\w+)\}$/) || [];
  return found ? term(found[2], withValues(found[1], values)) : name ? valueText(values[name]) : part;
});
const capital = name => name.replace(/^./u, first => first.toLocaleUpperCase(language));

// Fills the elements of page.html: `data-text` names their text, `data-label` their accessible name.
function fillTexts() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) element.replaceChildren(...rich(element.dataset.text));
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", t(element.dataset.label));
}

const formats = new Map();
function format(value, options) {
  const key = language + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(language, options));
  return formats.get(key).format(value);
}
const count = number => format(number, {});
// Without a sign where it rounds to 0.
const fixed = (value, digits) => format(Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
const withSign = (value, digits) => format(value, { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "always" });
const significant = value => format(value, { maximumSignificantDigits: 4, notation: Math.abs(value) < 1e6 ? "standard" : "scientific" });
// A cell of a map: ".63".
const cellText = value => fixed(value, 2).replace(/^(-?)0(?=\D)/, "$1");
// A fraction. What lies between 0 and 1 is never rounded to them: "99.7%", "> 99.9%".
function percent(fraction) {
  const of = (value, digits) => format(value, { style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits });
  if (fraction > 0 && fraction < 0.0005) return `< ${of(0.001, 1)}`;
  if (fraction < 1 && fraction >= 0.9995) return `> ${of(0.999, 1)}`;
  return of(fraction, fraction === 0 || fraction === 1 || (fraction >= 0.0995 && fraction < 0.9) ? 0 : 1);
}

// A word that explains itself when it is pressed, by mouse, touch or keyboard; Escape and what lies elsewhere close it.
let closeExplanation = () => {};
function term(name, shown) {
  const button = make("button", { type: "button", class: "term", "aria-expanded": "false" }, shown);
  button.addEventListener("click", event => {
    event.preventDefault();
    const isOpen = button.getAttribute("aria-expanded") === "true";
    closeExplanation();
    if (!isOpen) explainTerm(button, name);
  });
  return button;
}
function explainTerm(button, name) {
  const bubble = make("p", { class: "explanation", id: "explanation", role: "status" }), at = button.getBoundingClientRect();
  document.body.append(bubble);
  bubble.textContent = t(`term.${name}`);  // after it is in the page, so that it is read out
  const left = Math.min(at.left, document.documentElement.clientWidth - bubble.offsetWidth - 12);
  bubble.style.left = `${Math.max(left, 12) + scrollX}px`;
  const below = at.bottom + 6, above = at.top - 6 - bubble.offsetHeight, hasRoom = below + bubble.offsetHeight <= document.documentElement.clientHeight;
  bubble.style.top = `${(hasRoom || above < 0 ? below : above) + scrollY}px`;
  button.setAttribute("aria-expanded", "true");
  button.setAttribute("aria-describedby", "explanation");
  closeExplanation = () => {
    bubble.remove();
    button.setAttribute("aria-expanded", "false");
    button.removeAttribute("aria-describedby");
    closeExplanation = () => {};
  };
}
document.addEventListener("keydown", event => { if (event.key === "Escape") closeExplanation(); });
document.addEventListener("pointerdown", event => { if (!event.target.closest(".term, .explanation")) closeExplanation(); });
document.addEventListener("focusin", event => { if (!event.target.closest(".term, .explanation")) closeExplanation(); });
