#include "layers/pretrained.h"

#include <doctest/doctest.h>

#include "layers/model.h"
#include "tests/support/errors.h"
#include "tests/support/modules.h"
#include "tests/support/temp_dir.h"

namespace qkv::tests::pretrained_test {
namespace {

const std::vector<std::string> tokens = {"<pad>", "<unk>", "cat", "dog"};
const ModelOptions options{.kind = ModelKind::static_embedding, .width = 2};

/// Row `i` of the embedding table of a model with these options.
std::vector<double> row(const ModelOptions& of, Index i) {
  Random random = fresh();
  const auto model = make_model(of, 4, random, tokens);
  return slice(model->embedding_table().value().detach(), 0, i, i + 1).values();
}

ModelOptions with_file(const std::filesystem::path& file) {
  ModelOptions all = options;
  all.embedding_file = file.string();
  return all;
}

}  // namespace

TEST_CASE("make_model reads the vectors of the tokens that its embedding file has") {
  const TempDir dir;
  for (const std::string header : {"", "4 2\n", "\xEF\xBB\xBF"}) {
    const auto file = dir.write("v.txt", header + "dog 1 -2.5\r\nbird 1 1\n\n<unk> 3 3\ndog 7 7\n");
    CHECK(row(with_file(file), 3) == std::vector<double>{1, -2.5});
    for (const Index i : {0, 1, 2}) CHECK(row(with_file(file), i) == row(options, i));
  }
}

TEST_CASE("an embedding file without tokens, or for one-hot vectors, is an error") {
  const auto refusal = [](const ModelOptions& of, std::span<const std::string> names) {
    return error_of<ValueError>([&] {
      Random random = fresh();
      make_model(of, 4, random, names);
    });
  };
  ModelOptions all = with_file("v.txt");
  CHECK(refusal(all, {}) ==
        "[model] embedding_file v.txt needs the 4 tokens of the vocabulary, got 0; give them to "
        "make_model");
  all.width = 4;
  all.embedding = EmbeddingKind::one_hot;
  CHECK(refusal(all, tokens) ==
        "[model] one-hot vectors take no embedding_file, got v.txt; leave one of the two out");
}

TEST_CASE("a file that cannot be read or has no token is an error that names it") {
  const TempDir dir;
  const auto error = [&](const std::filesystem::path& file) {
    return error_of<UserError>([&] { row(with_file(file), 0); });
  };
  const auto none = dir.path() / "none.txt";
  CHECK(error(none) == none.string() + ": cannot be read: No such file or directory");
  CHECK(error(dir.path()) == dir.path().string() + ": is a folder, not a file");
  const auto birds = dir.write("birds.txt", "bird 1 2\n");
  CHECK(error(birds) == birds.string() + ": has none of the 4 words of the training data");
  const auto narrow = dir.write("narrow.txt", "dog 1 2\ncat 1\n");
  CHECK(error(narrow) ==
        narrow.string() + ":2: must be a word and model.width = 2 values, got 1 values");
}

TEST_CASE("a file of vectors whose first line announces something else is refused") {
  const TempDir dir;
  const auto error = [&](std::string_view text) {
    const auto file = dir.write("v.txt", text);
    return error_of<UserError>([&] { row(with_file(file), 0); }).substr(file.string().size());
  };
  const std::string two = "dog 1 2\ncat 3 4\n";
  CHECK(error("400000 2\n" + two) ==
        ": the first line announces 400000 words, the file has 2; is it complete?");
  CHECK(error("1 2\n" + two) ==
        ": the first line announces 1 words, the file has 2; is it complete?");
  CHECK(error("99999999999999999999999 2\n" + two).ends_with("the file has 2; is it complete?"));
  for (const std::string width : {"0", "3", "99999999999"})
    CHECK(error("2 " + width + "\n" + two) ==
          ":1: announces vectors of " + width + " values; model.width = 2");
}

TEST_CASE("a word of a file of vectors may have spaces, and a number a plus or no size") {
  const TempDir dir;
  const auto file =
      dir.write("v.txt", ". . . 4 5\nat name@domain.com 7 8\ndog +1 1e-400\ncat -1e-400 +2.5E+1\n");
  CHECK(row(with_file(file), 3) == std::vector<double>{1, 0});
  CHECK(row(with_file(file), 2) == std::vector<double>{0, 25});
  const auto error = [&](const std::string& line) {
    const auto wrong = dir.write("w.txt", line);
    return error_of<UserError>([&] { row(with_file(wrong), 0); }).substr(wrong.string().size());
  };
  CHECK(error("dog 1 2 3\n") == ":1: must be a word and model.width = 2 values, got 3 values");
  for (const std::string number : {"+-1", "+", "1e400", "nan", "inf", "1,5", "0x1"})
    CHECK(error("dog 1 " + number + "\n") == ":1: \"" + number + "\" is not a finite number");
}

TEST_CASE("loading vectors tells how many words got one, and whether the file may be cut off") {
  const TempDir dir;
  const auto loaded = [&](std::string_view text) {
    Parameter table(Tensor::zeros({4, 2}));
    return load_vectors(dir.write("v.txt", text), tokens, table);
  };
  const VectorsFound found = loaded("dog 1 2\nbird 1 2\ndog 3 4\n");
  CHECK(found.words == 2);
  CHECK(found.found == 1);
  CHECK(found.repeated == 1);
  CHECK_FALSE(found.lacks_line_end);
  CHECK(loaded("dog 1 0.").lacks_line_end);
}

TEST_CASE("a table as word2vec text comes back bit for bit") {
  const TempDir dir;
  Parameter table(randn({4, 3})), copy(Tensor::zeros({4, 3}));
  const auto text = word2vec_text(tokens, table);
  CHECK(text.starts_with("2 3\ncat "));
  load_vectors(dir.write("v.txt", text), tokens, copy);
  CHECK(slice(copy, 0, 2, 4).values() == slice(table, 0, 2, 4).values());
  CHECK(slice(copy, 0, 0, 2).values() == std::vector<double>(6, 0.0));
}

}  // namespace qkv::tests::pretrained_test
