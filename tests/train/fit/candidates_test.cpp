#include "train/fit/candidates.h"

#include <doctest/doctest.h>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "train/run/run.h"

using namespace qkv;

namespace {

constexpr std::string_view sentences =
    "good\ta fine day\nbad\ta dull week\ngood\ta fine week\nbad\ta dull day\n";
constexpr std::string_view indexed =
    "a\t1\tthe word is here\nb\t1\tthe word was there\na\t0\tword is\nb\t0\tword was\n";
constexpr std::string_view columns = "Rome B\nis O\n\nit O\nrains O\n";

}  // namespace

TEST_CASE("the task of a file follows from its columns, its ending and the word that is asked") {
  const TempDir dir;
  CHECK(task_kind_of(dir.write("a.tsv", sentences), "") == TaskKind::classify);
  CHECK(task_kind_of(dir.write("a.csv", "label,text\ngood,fine\nbad,dull\n"), "") ==
        TaskKind::classify);
  CHECK(task_kind_of(dir.write("b.tsv", indexed), "") == TaskKind::word_sense);
  CHECK(task_kind_of(dir.write("c.tsv", sentences), "a") == TaskKind::word_sense);
  CHECK(task_kind_of(dir.write("d.conll", columns), "") == TaskKind::tagging);
  CHECK(error_of<UserError>([&] { task_kind_of(dir.path() / "none.tsv", ""); }).find("none.tsv") !=
        std::string::npos);
}

TEST_CASE("every candidate of every task is a run without validation data") {
  const TempDir dir;
  for (const auto& file : {dir.write("a.tsv", sentences), dir.write("b.tsv", indexed),
                           dir.write("c.conll", columns)}) {
    const std::vector<std::string> data = {"task.data=" + file.string()};
    const auto [base, variants, other_data] = candidates_for(task_kind_of(file, ""), data);
    CHECK(variants.size() >= 4);
    for (const Variant& variant : variants) {
      CAPTURE(variant.name);
      const Run run = start_run(variant.config);
      CHECK(run.task->size(Split::train) == (file.extension() == ".conll" ? 2 : 4));
      CHECK(run.task->size(Split::valid) == 0);
    }
  }
}

TEST_CASE("an option that is set holds in all candidates that leave it open") {
  const TempDir dir;
  const std::vector<std::string> changes = {"task.data=" + dir.write("a.tsv", sentences).string(),
                                            "train.batch=7", "seed=5"};
  for (const Variant& variant : candidates_for(TaskKind::classify, changes).variants) {
    CHECK(variant.config.train.batch == 7);
    CHECK(variant.config.seed == 5);
  }
  CHECK(error_of<UserError>([&] {
          candidates_for(TaskKind::classify, {});
        }).find("task.train must name the training file") != std::string::npos);
}
