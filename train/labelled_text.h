#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/task.h"

namespace qkv {

/// A line of a data file, ready for a model to look at.
struct LabelledText {
  std::string label;  ///< empty when the line has none
  std::string text;
  Sentence sentence;
  Index index;  ///< the word that the line is about, else the sentence's first target, else -1
};

/// Reads a line of any task's data: its last column is the sentence, a first column its label, a
/// column between them the index of its word. Throws UserError.
LabelledText labelled_text(const Task& task, const std::string& line);
/// Reads all lines of a data file. Throws UserError naming file and line.
std::vector<LabelledText> read_labelled_texts(const Task& task, const std::filesystem::path& file);

}  // namespace qkv
