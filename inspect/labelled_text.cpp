#include "inspect/labelled_text.h"

#include <utility>

namespace qkv {

std::vector<LabelledText> read_labelled_texts(const LoadedModel& model,
                                              const std::filesystem::path& file,
                                              ReadCallback& callback) {
  std::vector<LabelledText> texts;
  model.task->for_each_line(file, callback, [&](TsvRow& row) {
    const std::string place = std::exchange(row.place, "");
    try {
      texts.push_back(model.task->read_line(row));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", place, error.what()));
    }
  });
  return texts;
}

}  // namespace qkv
