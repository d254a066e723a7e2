// All heads at a glance: a thumbnail of the attention map of every layer and head and of each layer's mean, of which one is chosen.

const choiceOf = (layer, head) => `${layer} ${head}`;

function thumbnail(map, layer, head, checked) {
  const input = make("input", { type: "radio", name: "head", value: choiceOf(layer, head), checked });
  input.addEventListener("change", () => choose({ layer, head }));
  const name = head === "mean" ? t("attention.mean") : t("part.head", { head });
  return make("label", {}, input, make("span", {}, make("canvas", { width: map.columns.length, height: map.rows.length, "aria-hidden": "true" }), name));
}

// Created anew when layers, heads or tokens are others, so that it keeps the focus.
function createThumbnails(map) {
  const heads = [...(map.heads > 1 ? ["mean"] : []), ...d3.range(map.heads)], isOnly = map.layers === 1 && map.heads === 1;
  const rows = d3.range(map.layers).map(layer => make("div", { class: "heads", role: "group", "aria-label": t("layer.name", { layer }) },
    ...(map.layers > 1 ? [make("span", { class: "soft" }, t("layer.name", { layer }))] : []),
    ...heads.map(head => thumbnail(map, layer, head, layer === layerOf(map) && head === headOf(map)))));
  $("heads").replaceChildren(...(isOnly ? [] : [make("fieldset", {}, make("legend", {}, ...rich("attention.heads")), ...rows)]));
}

function showHeads() {
  const map = mapOf(state.run), ink = colours();
  $("heads").hidden = !map;
  if (!map) return;
  remake("heads", [map.key, map.layers, map.heads, map.rows.length, map.columns.length, language], () => createThumbnails(map));
  for (const input of $("heads").querySelectorAll("input")) {
    const [layer, head] = input.value.split(" "), weights = weightsOf(map, Number(layer), head === "mean" ? head : Number(head));
    input.checked = input.value === choiceOf(layerOf(map), headOf(map));
    paintPixels(input.parentElement.querySelector("canvas"), weights, largestOf(map, weights), ink);
  }
}
