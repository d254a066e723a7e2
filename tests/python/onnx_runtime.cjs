// Runs an ONNX model: node onnx_runtime.cjs MODEL.onnx. Reads a JSON object a line, {"inputs": {NAME: nested lists of
// integers}, "outputs": [NAME, ...]}, and prints {NAME: {"dims": [...], "data": [...]}}; null stands for an infinity.
// Without lines it prints nothing and fails where onnxruntime-node is not on NODE_PATH.
const ort = require("onnxruntime-node");
const readline = require("readline");

function tensor(values) {
  const dims = [];
  for (let inner = values; Array.isArray(inner); inner = inner[0]) dims.push(inner.length);
  return new ort.Tensor("int64", BigInt64Array.from(values.flat(Infinity).map(BigInt)), dims);
}

async function main(file) {
  const session = await ort.InferenceSession.create(file, {intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3});
  for await (const line of readline.createInterface({input: process.stdin})) {
    const {inputs, outputs} = JSON.parse(line);
    const feeds = Object.fromEntries(Object.entries(inputs).map(([name, values]) => [name, tensor(values)]));
    const found = await session.run(feeds);  // all: onnxruntime-node 1.23 gives chosen outputs the names of others
    console.log(JSON.stringify(Object.fromEntries(
        outputs.map(name => [name, {dims: found[name].dims, data: Array.from(found[name].data)}]))));
  }
}

main(process.argv[2]).catch(error => {
  console.error(String(error));
  process.exit(1);
});
