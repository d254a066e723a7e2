#include "train/run/transfer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "layers/attention.h"
#include "train/config/task_kinds.h"
#include "train/storage/checkpoint.h"
#include "train/storage/content_hash.h"
#include "train/storage/run_folder.h"

namespace qkv {
namespace {

using Tokens = Task::Tokens;

/// The tokens that rows of a table belong to, in the trained model and in this one.
struct RowNames {
  const Tokens *there, *here;
};

/// The list whose entries the rows of the output layer belong to.
std::string list_of_outputs(const Task::Vocabularies& vocabulary) {
  return vocabulary.contains("labels") ? "labels" : "tokens";
}

/// The first of many names, and how many there are besides.
std::string listed(const Tokens& names) {
  constexpr std::size_t most = 12;
  const auto shown = std::span(names).first(std::min(names.size(), most));
  const std::size_t rest = names.size() - shown.size();
  return fmt::format("{}{}", fmt::join(shown, ", "), rest ? fmt::format(" and {} more", rest) : "");
}

/// Whether two tables have rows of the same shape.
bool rows_fit(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

/// Copies the rows of the names that both have, and returns how many these are.
Index load_rows(Parameter& parameter, const Tensor& source, const RowNames& rows) {
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < rows.there->size(); ++i) known.emplace((*rows.there)[i], i);
  auto values = parameter.value().values();
  const auto from = source.values();
  const std::size_t width = values.size() / rows.here->size();
  Index loaded = 0;
  for (std::size_t i = 0; i < rows.here->size(); ++i) {
    const auto row = known.find((*rows.here)[i]);
    if (row == known.end()) continue;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(row->second * width), width,
                values.begin() + static_cast<std::ptrdiff_t>(i * width));
    ++loaded;
  }
  parameter.assign(Tensor::from(values, parameter.shape(), parameter.value().dtype()));
  return loaded;
}

/// Loads a network from a trained model and keeps what is said about it.
class Loader {
 public:
  Loader(Network& network, const Task::Vocabularies& vocabulary, const InitialModel& from)
      : network_(network), vocabulary_(vocabulary), from_(from) {
    for (const auto& [path, attention] : modules<MultiHeadAttention>(network))
      if (const Index heads = attention->options.heads; heads != from.heads)
        for (const NamedParameter& named : parameters(*attention))
          heads_[named.parameter->node()] = heads;
  }

  std::vector<std::string> load() {
    auto unused = from_.parameters;
    for (const NamedParameter& named : parameters(network_)) {
      const auto source = unused.extract(named.path);
      if (source)
        load(named, source.mapped());
      else
        fresh_.push_back(named.path);
    }
    Tokens not_used;
    for (const auto& [path, value] : unused) not_used.push_back(path);
    return report(not_used);
  }

 private:
  void load(const NamedParameter& named, const Tensor& source) {
    const auto& [path, parameter] = named;
    const bool of_head = is_of_head(*parameter);
    const std::string there = list_of_outputs(from_.vocabulary),
                      here = list_of_outputs(vocabulary_);
    if (of_head && there != here) return leave(path, there, here);
    if (const auto heads = heads_.find(parameter->node()); heads != heads_.end())
      return leave(path, fmt::format("{} heads", from_.heads),
                   fmt::format("{} heads", heads->second));
    const auto rows = row_names(*parameter, source, of_head);
    const bool fits =
        rows ? rows_fit(source.shape(), parameter->shape()) : source.shape() == parameter->shape();
    if (!fits) return leave(path, source.shape(), parameter->shape());
    if (!rows) {
      parameter->assign(source.to(parameter->value().dtype()));
      ++loaded_;
      return;
    }
    const Index count = load_rows(*parameter, source, *rows), all = std::ssize(*rows->here);
    if (count == all)
      ++loaded_;
    else if (count > 0)
      partly_.push_back(fmt::format("{} of {} rows of {}", count, all, path));
    else
      fresh_.push_back(path + " (other labels)");
  }

  template <class T>
  void leave(const std::string& path, const T& there, const T& here) {
    fresh_.push_back(fmt::format("{} ({} there, {} here)", path, there, here));
  }

  bool is_of_head(const Parameter& parameter) const {
    const auto& head = network_.head;
    const auto is = [&](const Parameter& of_head) { return parameter.node() == of_head.node(); };
    return head && (is(head->weight) || (head->bias && is(*head->bias)));
  }

  /// None where the rows have no names, as those of a coreference model's output layer.
  std::optional<RowNames> row_names(const Parameter& parameter, const Tensor& source,
                                    bool of_head) const {
    if (!of_head && parameter.role() != Role::embedding) return std::nullopt;
    const auto names = [&](const Task::Vocabularies& lists) {
      return &token_list(lists, of_head ? list_of_outputs(lists) : "tokens");
    };
    const RowNames rows{names(from_.vocabulary), names(vocabulary_)};
    const bool named = source.rank() > 0 && source.dim(0) == std::ssize(*rows.there) &&
                       parameter.shape()[0] == std::ssize(*rows.here);
    return named ? std::optional(rows) : std::nullopt;
  }

  std::vector<std::string> report(const Tokens& not_used) const {
    ContentHash hash;
    for (const auto& named : from_.parameters)
      dispatch(named.second.dtype(),
               [&]<class T>() { hash.add(std::as_bytes(named.second.data<T>())); });
    Tokens loaded = {fmt::format("{} parameters", loaded_)};
    loaded.insert(loaded.end(), partly_.begin(), partly_.end());
    std::vector<std::string> lines = {
        fmt::format("starts from {}, step {} (XXH3 hash of its parameters {})", from_.name,
                    from_.step, hash.text()),
        fmt::format("loaded: {}", fmt::join(loaded, ", "))};
    if (!from_.other_options.empty())
      lines.push_back(fmt::format("it was trained with {}", from_.other_options));
    if (!fresh_.empty()) lines.push_back(fmt::format("newly initialised: {}", listed(fresh_)));
    if (const Tokens added = new_tokens(); !added.empty())
      lines.push_back(fmt::format("{} new tokens: {}", added.size(), listed(added)));
    if (!not_used.empty())
      lines.push_back(fmt::format("not used of {}: {}", from_.name, listed(not_used)));
    return lines;
  }

  Tokens new_tokens() const {
    const Tokens& there = token_list(from_.vocabulary, "tokens");
    const std::set<std::string_view> known(there.begin(), there.end());
    Tokens added;
    for (const std::string& token : token_list(vocabulary_, "tokens"))
      if (!known.contains(token)) added.push_back(token);
    return added;
  }

  Network& network_;
  const Task::Vocabularies& vocabulary_;
  const InitialModel& from_;
  std::map<const Node*, Index> heads_;  ///< of attention with other heads than there
  Index loaded_ = 0;
  Tokens partly_, fresh_;
};

/// The options of two models of one kind that say what they compute, where these differ.
std::string other_options(const Config& there, const Config& here) {
  if (there.model.kind != here.model.kind) return "";
  const auto function_of = [&](ModelOptions model) {
    const ModelOptions& same = here.model;
    model.dropout = same.dropout;
    model.max_length = same.max_length;
    model.embedding_std = same.embedding_std;
    model.embedding_file = same.embedding_file;
    Config config;
    config.model = std::move(model);
    return config;
  };
  return differing_options(function_of(there.model), function_of(here.model));
}

}  // namespace

InitialModel read_initial_model(const Config& config) {
  const std::filesystem::path file = find_checkpoint(config.train.init);
  Checkpoint checkpoint = read_checkpoint(file, CheckpointPart::without_optimizer);
  const Config trained = stored_config(checkpoint.config, file);
  const Cutting there = cutting_of(trained), here = cutting_of(config);
  const auto described = [](const Cutting& cutting) {
    return fmt::format("task.tokenizer = \"{}\", task.lower_case = {}, task.ngrams = {}",
                       row_of(tokenizer_kinds, cutting.kind).name, cutting.lower_case,
                       cutting.ngrams);
  };
  require<UserError>(trained.model.width == config.model.width,
                     "train.init: {} was trained with model.width = {}; this run has model.width = "
                     "{}",
                     config.train.init, trained.model.width, config.model.width);
  require<UserError>(there == here, "train.init: {} was trained with {}; this run has {}",
                     config.train.init, described(there), described(here));
  return {trained.name,
          checkpoint.step,
          std::move(checkpoint.model),
          std::move(checkpoint.vocabulary),
          trained.model.heads,
          other_options(trained, config)};
}

std::vector<std::string> load_initial(Network& network, const Task::Vocabularies& vocabulary,
                                      const InitialModel& from) {
  return Loader(network, vocabulary, from).load();
}

}  // namespace qkv
