// The rates at which Hugging Face's tokenizers learns byte pairs from a text and encodes it, lines of "name;MB/s". Run by
// bench/compare_readers:
//
//     node bench/tokenizers.cjs TEXT
const { statSync, readFileSync } = require("fs");
const { BPE, Tokenizer, byteLevelPreTokenizer } = require("tokenizers");

const file = process.argv[2];

async function measure(name, read) {
  const start = performance.now();
  await read();
  console.log(`${name};${(statSync(file).size / 1e3 / (performance.now() - start)).toFixed(1)}`);
}

async function main() {
  const tokenizer = new Tokenizer(BPE.empty());
  tokenizer.setPreTokenizer(byteLevelPreTokenizer(false));
  await measure("BPE, learned", () => tokenizer.train([file]));
  const lines = readFileSync(file, "utf8").split("\n");
  await measure("BPE, encoded", () => tokenizer.encodeBatch(lines, { addSpecialTokens: false }));
}

main();
