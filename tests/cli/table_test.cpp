#include "cli/table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/widest_line.h"

using namespace qkv;

TEST_CASE("numbers are flush right and texts flush left") {
  CHECK(
      table(
          {{"word", "n", "answer", "share"}, {"a", "7", "river", "5%"}, {"bank", "10", "it", "-"}},
          80) ==
      "word   n  answer  share\n"
      "────  ──  ──────  ─────\n"
      "a      7  river      5%\n"
      "bank  10  it          -\n");
}

TEST_CASE("a mean with its standard deviation is a number") {
  CHECK(table({{"loss"}, {"0.5 ± 0.1"}, {"-"}}, 80) ==
        "     loss\n"
        "─────────\n"
        "0.5 ± 0.1\n"
        "        -\n");
}

TEST_CASE("the end of a line in a cell does not end the table's line") {
  CHECK(table({{"text"}, {"a\nb"}}, 80) == "text\n────\na↵b\n");
}

TEST_CASE("a table that is too wide abbreviates its texts") {
  const std::string path(50, 'p');
  const std::string text = table({{"parameter", "mean"}, {path, "0.1234"}}, 40);
  CHECK(widest_line(text) == 40);
  CHECK(text.find("…") != text.npos);
  CHECK(text.find("0.1234") != text.npos);
}

TEST_CASE("a table of too many columns becomes several that begin with the first column") {
  Cells rows = {{"parameter"}, {"encoder.layers.0.attention.w_q.weight"}};
  for (int i = 0; i < 12; ++i) {
    rows[0].push_back(fmt::format("column {}", i));
    rows[1].push_back(fmt::format("{}.5000", i));
  }
  const std::string text = table(rows, 80);
  CHECK(widest_line(text) <= 80);
  for (int i = 0; i < 12; ++i) CHECK(text.find(fmt::format(" {}.5000", i)) != text.npos);
  std::size_t parts = 0;
  for (auto at = text.find("encoder.layers.0.attention.w_q.weight"); at != text.npos;
       at = text.find("encoder.layers", at + 1))
    ++parts;
  CHECK(parts >= 2);
}

TEST_CASE("a table takes no commands from its cells") {
  CHECK(table({{"\x1bword"}, {"\x1b[2J\tx"}}, 80) == "␛word\n──────\n␛[2J⇥x\n");
}

TEST_CASE("comma-separated values are quoted where they must be, and kept as they are") {
  CHECK(to_csv({{"text", "loss"}, {"a,b", "0.5"}, {"say \"no\"\nnow", "-"}}) ==
        "text,loss\n\"a,b\",0.5\n\"say \"\"no\"\"\nnow\",-\n");
}

TEST_CASE("a table in Markdown has numbers flush right, and no cell ends a column or a line") {
  CHECK(to_markdown({{"text", "loss"}, {"a|b\\", "0.5"}, {"c\nd", "0.5 ± 0.1"}}) ==
        "| text | loss |\n"
        "|---|---:|\n"
        "| a\\|b\\\\ | 0.5 |\n"
        "| c↵d | 0.5 ± 0.1 |\n");
}

TEST_CASE("a table in LaTeX has no commands of its cells") {
  CHECK(
      to_latex({{"w_q", "loss"}, {"50% & \\x{y}^~#$", "0.5"}}) ==
      "\\begin{tabular}{lr}\n"
      "\\hline\n"
      "w\\_q & loss \\\\\n"
      "\\hline\n"
      "50\\% \\& \\textbackslash{}x\\{y\\}\\textasciicircum{}\\textasciitilde{}\\#\\$ & 0.5 \\\\\n"
      "\\hline\n"
      "\\end{tabular}\n");
}
