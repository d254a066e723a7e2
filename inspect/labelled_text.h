#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/run.h"

namespace qkv {

/// A line of a data file, ready for a model to look at.
struct LabelledText {
  std::string label;  ///< empty when the line has none
  std::string text;
  Sentence sentence;
  Index index;  ///< the word that the line is about, else the sentence's first target, else -1
  Index answer = -1;  ///< the word that a coreference line names as the answer, else -1
};

/// Reads a line of the model's kind of data: a sentence, `label<TAB>sentence`,
/// `label<TAB>index<TAB>sentence`, `antecedent<TAB>pronoun<TAB>sentence` or `source<TAB>target`.
/// Throws UserError.
LabelledText labelled_text(const Trained& model, const std::string& line);
/// Reads all lines of a data file but blank ones. Throws UserError naming file and line.
std::vector<LabelledText> read_labelled_texts(const Trained& model,
                                              const std::filesystem::path& file);

}  // namespace qkv
