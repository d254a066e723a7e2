// A link is a model: #train= and the config, the steps, the checksum, and the data files that are not the page's, if they are small.
// A link comes from strangers: it is bounded and checked here in form, its content by the engine, and shown as text alone.

const mostLink = 100000, mostLinkedData = 2000;  // characters

function linkTo({ config, steps, checksum, files }) {
  const changed = Object.keys(files).length ? { files } : {}, seed = optionValue(optionsIn(config).seed);
  const fragment = encodeURIComponent(JSON.stringify({ config: withoutComments(config), seed, steps, checksum, ...changed }));
  return `${location.href.replace(/#.*/s, "")}#train=${fragment}`;
}

const isTable = value => typeof value === "object" && value !== null && !Array.isArray(value);
const isCount = value => Number.isSafeInteger(value) && value >= 0;
function isLinked({ config, seed, steps, checksum, files }) {
  return typeof config === "string" && isCount(seed) && isCount(steps) && /^[0-9a-f]{16}$/.test(checksum) &&
    (files === undefined || isTable(files) && Object.values(files).every(text => typeof text === "string"));
}
// The model of a fragment: null where it is none of these links, { error: key } where it is malformed.
function linkedModel(fragment) {
  if (!fragment.startsWith("#train=")) return null;
  if (fragment.length > mostLink) return { error: "link.too_long" };
  try {
    const linked = JSON.parse(decodeURIComponent(fragment.slice(7)));
    if (!isTable(linked) || !isLinked(linked)) return { error: "link.malformed" };
    return { ...linked, config: withOption(linked.config, "seed", String(linked.seed)) };
  } catch {
    return { error: "link.malformed" };
  }
}
