#include <doctest/doctest.h>

#include "core/error.h"
#include "datasets/conll.h"
#include "datasets/encoded_text.h"
#include "datasets/sentences.h"
#include "tests/support/read_files.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

// Small files as people have them: every reader with encodings, headers, separators, spaces,
// schemes, comments and sizes. Each is read as it is meant, or refused with the fix.

namespace {

struct Case {
  std::string name, text, expected;  ///< "f.csv", its bytes, the reading or the error
};

using Read = std::string (*)(const std::filesystem::path& file);

/// The contents of a file, or the error without the folder.
std::string outcome(const Case& file, Read read) {
  const TempDir dir;
  try {
    return read(dir.write(file.name, file.text));
  } catch (const Error& error) {
    std::string text = error.what();
    const std::string folder = dir.path().string() + "/";
    for (auto at = text.find(folder); at != text.npos; at = text.find(folder))
      text.erase(at, folder.size());
    return "error: " + text;
  }
}

void check(std::initializer_list<Case> files, Read read) {
  for (const Case& file : files) {
    CAPTURE(file.name);
    CAPTURE(file.text);
    CHECK(outcome(file, read) == file.expected);
  }
}

std::string joined(const std::vector<std::string>& texts, const std::string& between) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : between) + text;
  return all;
}

/// "label: piece piece; ..."
std::string classified(const std::filesystem::path& file) {
  std::vector<std::string> examples;
  for (const TsvRow& row : read_tsv(file, classify_columns)) {
    const SentenceExample example = parse_labelled(row);
    examples.push_back(example.label + ": " + joined(example.pieces, " "));
  }
  return joined(examples, "; ");
}

/// "label: piece piece [piece asked about]; ..."
std::string senses(const std::filesystem::path& file) {
  std::vector<std::string> examples;
  for (const TsvRow& row : read_tsv(file, word_sense_columns)) {
    SentenceExample example = parse_labelled(row);
    std::string& asked = example.pieces[static_cast<std::size_t>(example.index)];
    asked = "[" + asked + "]";
    examples.push_back(example.label + ": " + joined(example.pieces, " "));
  }
  return joined(examples, "; ");
}

/// "source = target; ..."
std::string pairs(const std::filesystem::path& file) {
  std::vector<std::string> examples;
  for (const TsvRow& row : read_tsv(file, translate_columns)) {
    const SentencePair pair = parse_translation(row);
    examples.push_back(joined(pair.source, " ") + " = " + joined(pair.target, " "));
  }
  return joined(examples, "; ");
}

/// The sentences of a file for a task that reads them alone.
std::string sentences(const std::filesystem::path& file) {
  ReadCallback silent;
  std::vector<std::string> texts;
  for_each_row(file, silent, [&](const TsvRow& row) { texts.push_back(row.fields.back()); });
  return joined(texts, "; ");
}

/// "word:label word:label; ..."
std::string tagged(const std::filesystem::path& file) {
  ReadCallback silent;
  std::vector<std::string> texts;
  for_each_conll_sentence(file, silent, [&](const LabelledWords& sentence) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < sentence.words.size(); ++i)
      words.push_back(sentence.words[i] + ":" + sentence.labels[i]);
    texts.push_back(joined(words, " "));
  });
  return joined(texts, "; ");
}

std::string text_of(const std::filesystem::path& file) {
  ReadCallback silent;
  const BlockedText text(file, silent);
  std::string whole;
  for (Index i = 0; i < text.blocks(); ++i) whole += text.block(i);
  return whole;
}

std::string utf16(std::string_view ascii, bool little) {
  std::string bytes = little ? "\xFF\xFE" : "\xFE\xFF";
  for (const char c : ascii) bytes += little ? std::string{c, '\0'} : std::string{'\0', c};
  return bytes;
}

const std::string header_help =
    "; name them so, or tell with task.columns, whose entries are their names or numbers from 1";

}  // namespace

TEST_CASE("files of labels and texts as people have them") {
  const std::string good_bad = "good: fine film; bad: dull film";
  check(
      {
          // Headers.
          {"f.tsv", "good\tfine film\nbad\tdull film\n", good_bad},
          {"f.tsv", "label\ttext\ngood\tfine film\nbad\tdull film\n", good_bad},
          {"f.csv", "review,sentiment\nfine film,good\ndull film,bad\n", good_bad},
          {"f.csv", "text,label\nfine film,good\ndull film,bad\n", good_bad},
          {"f.tsv", "Message\tCategory\nfine film\tgood\ndull film\tbad\n", good_bad},
          {"f.csv", "id,tweet_text,airline_sentiment\n1,fine film,good\n2,dull film,bad\n",
           good_bad},
          {"f.csv", "text,label,label_text\nfine film,good,Good\ndull film,bad,Bad\n", good_bad},
          {"f.csv", "\"Review Text\",\"Rating\"\nfine film,good\ndull film,bad\n", good_bad},
          {"f.csv", "label,text,,\ngood,fine film,,\nbad,dull film,,\n", good_bad},
          {"f.csv", "v1,v2\nham,hello\nspam,win\n",
           "error: f.csv:1: cannot tell which of the columns \"v1\", \"v2\" are label, text" +
               header_help},
          {"f.csv", "0,1\nham,hello\nspam,win\n",
           "error: f.csv:1: cannot tell which of the columns \"0\", \"1\" are label, text" +
               header_help},
          {"f.csv", "label,kommentar\ngood,fine film\nbad,dull film\n",
           "error: f.csv:1: cannot tell which of the columns \"label\", \"kommentar\" are label, "
           "text" +
               header_help},
          {"f.csv", "label,question,answer_text\na,b,c\nd,e,f\n",
           "a: b; d: e"},  // the name as a whole before the end of one
          {"f.csv", "label,question,comment\na,b,c\nd,e,f\n",
           "error: f.csv:1: cannot tell which of the columns \"label\", \"question\", \"comment\" "
           "are label, text" +
               header_help},
          {"f.tsv", "text\tsentence\nsong\tla\ntext\tword\n",
           "text: sentence; song: la; text: word"},
          {"f.csv", "text,label\nfine, film,good\n",
           "error: f.csv:2: must have the 2 columns of the header, got 3"},
          {"f.csv", "text,label\nfine film\n",
           "error: f.csv:2: must have the 2 columns of the header, got 1"},
          // Separators and quotes.
          {"f.csv", "good;fine film\nbad;dull film\n", good_bad},
          {"f.csv", "text;label\n\"fine film\";good\n\"dull film\";bad\n", good_bad},
          {"f.csv", "label;text\ngood;fine, really\n", "good: fine , really"},
          {"f.csv", "good\tfine film\nbad\tdull film\n", good_bad},
          {"f.csv", "good, \"fine film\"\nbad , \"dull film\" \n", good_bad},
          {"f.csv", "good,\"fine \"\"film\"\"\nof ours\"\n", "good: fine \" film \" of ours"},
          {"f.tsv", "good,fine film\n",
           "error: f.tsv:1: must be label<TAB>text, got 1 field; name a file with commas or "
           "semicolons *.csv"},
          {"f.csv", "good\nbad\n", "error: f.csv:1: must be label,text, got 1 field"},
          {"f.tsv", "7\tgood\tfine film\n",
           "error: f.tsv:1: must be label<TAB>text, got 3 fields; name the columns in a first "
           "line"},
          // Line ends.
          {"f.tsv", "good\tfine film\r\nbad\tdull film\r\n", good_bad},
          {"f.tsv", "good\tfine film\rbad\tdull film\r", good_bad},
          {"f.csv", "label,text\rgood,fine film\rbad,dull film", good_bad},
          {"f.tsv", "\n \ngood\tfine film\n\u00A0\n\nbad\tdull film", good_bad},
          // White space, and characters that look alike.
          {"f.tsv", "good \tfine film\n good\tfine film\n\u00A0good\u3000\t fine\u2003film\n",
           "good: fine film; good: fine film; good: fine film"},
          {"f.tsv", "\uFEFFgood\tfine film\n\uFEFFbad\tdull film\n", good_bad},
          {"f.tsv", "a\tfine\u00A0film\u200Bof\u2028ours\uFEFF\n", "a: fine film of ours"},
          {"f.tsv", "cafe\u0301\tun cafe\u0301\ncaf\u00E9\tun caf\u00E9\n",
           "caf\u00E9: un caf\u00E9; caf\u00E9: un caf\u00E9"},
          {"f.tsv", "a\t\u201CFine\u201D film\u2026 don\u2019t\u2014go \u2018now\u2019\n",
           "a: \u201C fine \u201D film \u2026 don't \u2014 go \u2018 now \u2019"},
          {"f.tsv", "a\t\u00BFqu\u00E9? \u00ABfilm\u00BB l\u00B7l co\u2011op\n",
           "a: \u00BF qu\u00E9 ? \u00AB film \u00BB l\u00B7l co\u2011op"},
          // Encodings and other formats.
          {"f.tsv", "good\tcaf\xE9\n",
           "error: f.tsv:1: is not valid UTF-8; save the file as UTF-8"},
          {"f.tsv", utf16("good\tfine\n", true), "error: f.tsv: is UTF-16; save the file as UTF-8"},
          {"f.csv", utf16("good,fine\n", false), "error: f.csv: is UTF-16; save the file as UTF-8"},
          {"f.tsv", utf16("good\tfine\n", true).substr(2),
           "error: f.tsv:1: contains a zero byte; is it UTF-16? Save the file as UTF-8"},
          {"f.jsonl", "{\"label\": \"good\", \"text\": \"fine film\"}\n",
           "error: f.jsonl:1: is JSON; write it as CSV, or with a tab between columns"},
          {"f.json", "[\n{\"label\": 1}\n]\n",
           "error: f.json:1: is JSON; write it as CSV, or with a tab between columns"},
          {"f.tsv", "", "error: f.tsv: is empty"},
          {"f.tsv", " \n\t\n", "error: f.tsv: all of its lines are blank"},
          {"f.tsv", "\tfine film\n", "error: f.tsv:1: the label is empty"},
          {"f.tsv", "good\t\u200B\n", "error: f.tsv:1: the sentence is empty"},
          // Sizes.
          {"f.tsv", "good\t" + std::string(65537, 'x') + "\n",
           "error: f.tsv:1: a word must have at most 65536 bytes, got 65537; is this text?"},
          {"f.csv", "good,\"" + std::string(66000, ' ') + "\n",
           "error: f.csv:1: a field in quotes must have at most 65536 bytes; are they closed?"},
      },
      classified);
}

TEST_CASE("files of word senses as people have them") {
  check(
      {
          {"f.tsv", "river\t2\tthe old bank\n", "river: the old [bank]"},
          {"f.csv", "sentence,word_index,sense\nthe old bank,2,river\n", "river: the old [bank]"},
          {"f.tsv", "river\t 2 \tthe\u3000old bank\n", "river: the old [bank]"},
          {"f.tsv", "river\t2\tthe\u00A0old\u2028\u201Cbank\u201D\n",
           "river: the old \u201C [bank] \u201D"},
          {"f.csv", "sentence,sense\nthe old bank,river\na bank,money\n",
           "error: f.csv:1: cannot tell which of the columns \"sentence\", \"sense\" are the "
           "label, "
           "index, sentence" +
               header_help},
          {"f.tsv", "river\t3\tthe old bank\n",
           "error: f.tsv:1: the index must be less than the sentence's 3 words, got 3"},
      },
      senses);
}

TEST_CASE("files of pairs as people have them") {
  check(
      {
          {"f.tsv", "the dog\tder Hund\n", "the dog = der hund"},
          {"f.csv", "target;source\nder Hund;the dog\n", "the dog = der hund"},
          {"f.tsv", "the dog\n", "error: f.tsv:1: must be source<TAB>target, got 1 field"},
      },
      pairs);
}

TEST_CASE("files of sentences alone as people have them") {
  check(
      {
          {"f.txt", "a film\nof ours\n", "a film; of ours"},
          {"f.tsv", "good\ta film\nbad\t2\tof ours\n", "a film; of ours"},
          {"f.csv", "review,sentiment\na film,good\nof ours,bad\n", "a film; of ours"},
          {"f.csv", "id,review\n1,a film\n2,of ours\n", "a film; of ours"},
          {"f.tsv", "source\ttarget\na\tb\n", "b"},
      },
      sentences);
}

TEST_CASE("files of labelled words as people have them") {
  const std::string rome = "Rome:B-LOC sleeps:O";
  check(
      {
          {"f.conll", "Rome B-LOC\nsleeps O\n", rome},
          {"f.conll", "-DOCSTART- -X- O O\n\nRome NNP  B-LOC\nsleeps VBZ  O\n\n\n", rome},
          {"f.conll", "Rome\tB-LOC\t\nsleeps\tO\r\n", rome},
          {"f.conll", "Rome\tB-LOC\rsleeps\tO\r\rBonn\tB-LOC\r", rome + "; Bonn:B-LOC"},
          {"f.conll", "Paid\tO\n10 000\tB-NUM\n10\u00A0000\tB-NUM\n",
           "Paid:O 10 000:B-NUM 10\u00A0000:B-NUM"},
          {"f.conll", "10\u00A0000 B-NUM\n", "10\u00A0000:B-NUM"},
          // Comments, and words that begin with "#".
          {"f.conll", "# id 7f3a domain=en\nRome _ _ B-LOC\nsleeps _ _ O\n", rome},
          {"f.conll", "# id 7f3a\tdomain=en\nRome _ _ B-LOC\nsleeps _ _ O\n", rome},
          {"f.conll",
           "#begin document (x/y); part 000\nRome B-LOC\nsleeps O\n\n#end document\n"
           "#begin document (x/z)\nBonn B-LOC\n#end document\n",
           rome + "; Bonn:B-LOC"},
          {"f.conll", "# O\n1 O\n\n#rome B-LOC\n\nthe O\n# O\n", "#:O 1:O; #rome:B-LOC; the:O #:O"},
          {"u.conllu",
           "# sent_id = 1\n# newpar\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n"
           "1\tde\tde\tADP\t_\t_\t2\tcase\t_\t_\n2\tle\tle\tDET\t_\t_\t0\troot\t_\t_\n"
           "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\tSpaceAfter=No\n",
           "de:ADP le:DET .:PUNCT"},
          // White space, labels and errors.
          {"f.conll", "\uFEFFRome B-LOC\n\u200B O\n", "Rome:B-LOC"},
          {"f.conll", "a cafe\u0301\nb caf\u00E9\n", "a:caf\u00E9 b:caf\u00E9"},
          {"f.conll", "Rome B-LOC\nsleeps\n",
           "error: f.conll:2: must be a word and its label, got \"sleeps\""},
          {"f.conll", "# id = 1\n\n", "error: f.conll: has no sentence"},
          {"f.conll", utf16("Rome O\n", true), "error: f.conll: is UTF-16; save the file as UTF-8"},
      },
      tagged);
}

TEST_CASE("files of running text as people have them") {
  check(
      {
          {"f.txt", "one\ntwo\n", "one\ntwo\n"},
          {"f.txt", "\uFEFFone\r\ntwo", "one\ntwo\n"},
          {"f.txt", "one\rtwo\r", "one\ntwo\n"},
          {"f.txt", utf16("one\n", false), "error: f.txt: is UTF-16; save the file as UTF-8"},
          {"f.txt", "", "error: f.txt: is empty"},
          {"f.txt", "one\nt\xFFo\n", "error: f.txt:2: is not valid UTF-8; save the file as UTF-8"},
      },
      text_of);
}

TEST_CASE("columns that the options name are read, whatever the file calls them") {
  const auto read = [](const std::string& text, std::vector<std::string> chosen) {
    const TempDir dir;
    const auto file = dir.write("f.csv", text);
    std::string all;
    try {
      for (const TsvRow& row : read_tsv(file, Columns(classify_columns, std::move(chosen))))
        all += row.fields[0] + ": " + row.fields[1] + "; ";
    } catch (const UserError& error) {
      all = std::string(error.what()).substr(dir.path().string().size() + 1);
    }
    return all;
  };
  CHECK(read("a film,good,x\nof ours,bad,y\n", {"2", "1"}) == "good: a film; bad: of ours; ");
  CHECK(read("v1,v2\ngood,a film\n", {"v1", "v2"}) == "good: a film; ");
  CHECK(read("v1,v2\ngood,a film\n", {"1", "2"}) == "good: a film; ");
  CHECK(read("kommentar,klasse,id\na film,good,1\n", {"klasse", "kommentar"}) == "good: a film; ");
  CHECK(read("text,label,title\na film,good,b\n", {"label", "title"}) == "good: b; ");
  CHECK(read("text,klasse\na film,good\n", {"sense", "text"}) ==
        "f.csv:1: the header has no column \"sense\" (task.columns); it has \"text\", \"klasse\"");
  CHECK(read("a film,good\n", {"3", "1"}) ==
        "f.csv:1: there is no column 3 (task.columns); the file has 2");
  CHECK(read("a film,good\nof ours\n", {"2", "1"}) ==
        "f.csv:2: must have the 2 columns of the first line, got 1");
}
