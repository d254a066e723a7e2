#include "datasets/coarsewsd.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "datasets/text_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

using Labels = std::map<std::string, std::string>;

/// {"0": "bank_bank", ...}
Labels read_classes(const fs::path& file) {
  std::string text;
  for (const std::string& line : read_lines(file)) text += line + "\n";
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const bool valid = json.is_object() && !json.empty() &&
                     std::ranges::all_of(json, [](const auto& name) { return name.is_string(); });
  require<UserError>(valid, "{}: must be a JSON object such as {{\"0\": \"sense\"}}",
                     file.string());
  return json.get<Labels>();
}

std::vector<TsvRow> read_split(const fs::path& folder, const std::string& split,
                               const Labels& labels) {
  const fs::path data_file = folder / (split + ".data.txt"),
                 gold_file = folder / (split + ".gold.txt");
  const auto data = read_tsv(data_file, "index<TAB>sentence"), gold = read_tsv(gold_file, "label");
  require<UserError>(data.size() == gold.size(), "{} has {} lines, {} has {}; they must agree",
                     data_file.string(), data.size(), gold_file.string(), gold.size());
  std::vector<TsvRow> rows;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto label = labels.find(gold[i].fields[0]);
    gold[i].demand(label != labels.end(), "the label \"{}\" is not in classes_map.txt",
                   gold[i].fields[0]);
    rows.push_back({data[i].place, {label->second, data[i].fields[0], data[i].fields[1]}});
  }
  return rows;
}

}  // namespace

CoarseWsd read_coarsewsd(const fs::path& folder, double valid_share, std::uint64_t seed) {
  require<UserError>(fs::is_directory(folder),
                     "{}: is not a folder; task.data names the folder of one word of CoarseWSD-20",
                     folder.string());
  const Labels labels = read_classes(folder / "classes_map.txt");
  std::map<std::string, std::vector<TsvRow>> by_label;
  for (TsvRow& row : read_split(folder, "train", labels))
    by_label[row.fields[0]].push_back(std::move(row));

  CoarseWsd splits;
  Random random(seed, Purpose::shuffling);
  for (const auto& [label, rows] : by_label) {
    const auto held_out =
        static_cast<std::size_t>(std::lround(valid_share * static_cast<double>(rows.size())));
    const auto order = random.next().permutation(std::ssize(rows));
    for (std::size_t i = 0; i < order.size(); ++i)
      (i < held_out ? splits.valid : splits.train)
          .push_back(rows[static_cast<std::size_t>(order[i])]);
  }
  splits.test = read_split(folder, "test", labels);
  return splits;
}

}  // namespace qkv
