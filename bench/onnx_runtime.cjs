// How long ONNX Runtime takes for a model: node onnx_runtime.cjs MODEL.onnx BATCH TIME THREADS SECONDS prints the median
// of its forward passes over a batch of equally long sequences, in milliseconds.
const ort = require("onnxruntime-node");

async function main(file, batch, time, threads, seconds) {
  const session = await ort.InferenceSession.create(
      file, {intraOpNumThreads: threads, interOpNumThreads: 1, logSeverityLevel: 3});
  const ids = BigInt64Array.from({length: batch * time}, (_, i) => BigInt(2 + i % 60));
  const feeds = {ids: new ort.Tensor("int64", ids, [batch, time])};
  if (session.inputNames.includes("lengths"))
    feeds.lengths = new ort.Tensor("int64", new BigInt64Array(batch).fill(BigInt(time)), [batch]);
  const times = [];
  await session.run(feeds);
  for (const begin = performance.now(); times.length < 3 || performance.now() - begin < 1000 * seconds;) {
    const start = performance.now();
    await session.run(feeds);
    times.push(performance.now() - start);
  }
  console.log(times.sort((a, b) => a - b)[times.length >> 1]);
}

main(process.argv[2], ...process.argv.slice(3).map(Number));
