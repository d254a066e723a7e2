"""A C++ program that asks models in headers that qkv export wrote.

It reads lines "MODEL xHEX", with the text in hexadecimal digits; a language model also takes "TOKENS TEMPERATURE TOP_K TOP_P
SEED". For each it prints "text" and a line for each answer: index or -1, label in hexadecimal digits, probability,
probabilities, logits. A language model prints the text that it writes or, without options of sampling, an answer about its next
token.
"""
CLASSES = {"word": "WordTokenizer", "char": "CharacterTokenizer", "bpe": "BytePairTokenizer", "wordpiece": "WordPieceTokenizer",
           "byte-level": "ByteLevelTokenizer", "decoder": "Transformer", "recurrent": "Recurrent"}
PROGRAM = r"""
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>

struct Answer {
  std::optional<std::size_t> index;
  std::string label;
  double probability = 0;
  std::vector<double> logits, probabilities;
};

static std::string from_hex(const std::string& digits) {
  std::string text;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return text;
}
static void print_hex(const std::string& text) {
  std::printf(" x");
  for (const char c : text) std::printf("%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
}
template <class Prediction>
void print(const Prediction& answer) {
  std::printf("%ld", answer.index ? static_cast<long>(*answer.index) : -1L);
  print_hex(answer.label);
  std::printf(" %.17g", answer.probability);
  for (const double value : answer.probabilities) std::printf(" %.17g", value);
  for (const double value : answer.logits) std::printf(" %.17g", value);
  std::printf("\n");
}
template <class Prediction>
void print(const std::vector<Prediction>& answers) {
  for (const Prediction& answer : answers) print(answer);
}
static void print(const std::string& text) {
  print_hex(text);
  std::printf("\n");
}

int main() {
  for (std::string line; std::getline(std::cin, line);) try {
      std::istringstream words(line);
      std::string model, digits;
      words >> model >> digits;
      const std::string text = from_hex(digits.substr(1));
      std::printf("text\n");
      @CALLS@
    } catch (const std::invalid_argument& error) {
      std::printf("error");
      print(std::string(error.what()));
    }
}
"""
PREDICT = 'if (model == "{0}") print(qkv_{0}::{1}(text));'
# Without options of sampling: the logits of the next token, as an answer about the last one.
GENERATE = """if (model == "{0}") {{
        using namespace qkv_{0};
        std::size_t tokens = 0;
        Sampling sampling;
        words >> tokens >> sampling.temperature >> sampling.top_k >> sampling.top_p >> sampling.seed;
        if (tokens > 0) {{
          print(generate(text, tokens, sampling));
          continue;
        }}
        Ids ids;
        require_utf8(text);
        for_each_piece<{1}>({1}::prepared(text), [&](std::string_view piece) {{ {1}::encode(piece, ids); }});
        if (ids.empty() || ids.size() > description().max_length) throw std::invalid_argument("too short or long");
        {2}::Cache cache;
        Answer answer;
        answer.logits = logits_of(loaded<{2}>()(ids, cache).one_row(ids.size() - 1)).values;
        answer.probabilities = softmax(answer.logits);
        const auto best = std::max_element(answer.logits.begin(), answer.logits.end()) - answer.logits.begin();
        answer.index = ids.size() - 1;
        answer.label = token_of(static_cast<int>(best));
        answer.probability = answer.probabilities[static_cast<std::size_t>(best)];
        print(answer);
      }}"""


def source(models):
    """The program of models m0, m1, ...: (task, kind, tokenizer) of each."""
    def call(i, task, kind, tokenizer):
        if task == "language-model":
            return GENERATE.format(f"m{i}", CLASSES[tokenizer], CLASSES[kind])
        return PREDICT.format(f"m{i}", "translate" if task == "translate" else "predict")
    includes = "".join(f'#include "m{i}.h"\n' for i in range(len(models)))
    calls = "\n      else ".join(call(i, *model) for i, model in enumerate(models))
    return includes + PROGRAM.replace("@CALLS@", calls)
