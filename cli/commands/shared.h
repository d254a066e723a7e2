#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/command_line.h"
#include "cli/commands/commands.h"
#include "cli/document.h"
#include "cli/progress.h"
#include "datasets/read_callback.h"
#include "inspect/documents/evaluation.h"
#include "inspect/probe_check.h"
#include "train/run/run.h"
#include "train/storage/run_folder.h"

/// Helpers that several subcommands share.
namespace qkv::commands {

/// Options that several commands have.
Option model_argument(std::string& model);
Option config_argument(std::string& config);
Option set_option(std::vector<std::string>& changes);
Option word_option(std::string& word);
Option untrained_flag(bool& flag);
Option int8_flag(bool& flag);
Option threads_option();
/// The model that the MODEL argument and the --untrained flag name. Throws UserError.
SavedModel load_model(const std::string& model, bool before_training = false);

/// Options that choose one of several.
Option layer_option(Index& layer);
Option head_option(Index& head);
/// Throws UserError when an option's value is not below `count`.
void require_in_range(Index value, std::size_t count, std::string_view option);

/// Throws UserError when a data file of a config no longer exists; `model` is what was trained on
/// it, `fix` how the user names another.
void require_data(const Config& config, const std::string& model, std::string_view fix);

/// Notes what was done to the data, and shows on a terminal how far a command is that takes longer
/// than a second.
class Notes : public ReadCallback {
 public:
  /// `place`: what begins each note, as "texts:3: ".
  explicit Notes(Document& document, std::string place = "")
      : document_(document), place_(std::move(place)) {}
  void on_message(const std::string& line) override { document_.add_note("{}{}", place_, line); }
  void on_reading(std::string_view what, double fraction) override {
    bar_.draw_reading(what, fraction);
  }

 private:
  Document& document_;
  std::string place_;
  Bar bar_{std::chrono::seconds(1)};
};

/// A text that a model is asked about, where it is from, and its line in a file.
struct Question {
  std::string text;
  std::string place;  ///< "texts:3", "text 3"
  std::optional<std::size_t> line = {};
};
/// The lines of a file that are not blank; the blank ones are noted.
std::vector<Question> lines_of(const std::string& file, Document& document);
/// The exit code of a command that found no answer to some of the texts of a file.
constexpr int wrong_data = 2;

/// The examples that a command measures a model on.
struct EvaluationData {
  std::string name;  ///< "test split"
  std::function<Evaluation(const EvaluationOptions& options, ReadCallback& callback)> evaluate;
};

/// The option --data of commands that use `evaluation_data`.
Option evaluation_data_option(std::string& data);
/// The file `data` or, where it is empty, the test split of the model's config, else its valid
/// split. `model` is what the user named; `trained` must outlive the result. Throws UserError.
EvaluationData evaluation_data(const LoadedModel& trained, const std::string& model,
                               const std::string& data, ReadCallback& callback);

/// Whether the splits of a run are not those of its config's files: they are drawn from task.data,
/// or one is a fold.
bool draws_splits(const TaskOptions& task);
/// The task with the splits that were drawn for a run. Throws UserError when its data is gone or
/// has changed.
std::shared_ptr<const Task> drawn_task(const LoadedModel& trained, const std::string& model,
                                       ReadCallback& callback);
/// The test split or, where there is none, the valid split. Throws UserError when both are empty.
Split measured_split(const Task& task, const std::string& model);

/// "test split: 400 examples  loss 0.0373  accuracy 0.9925", without the scores of each label.
void add_evaluation(Document& document, const std::string& data, const Evaluation& evaluation);

/// The results of probes, each with its variant; a table for people, and JSON.
struct VariantProbe {
  std::string variant;  ///< empty: there is only one model
  ProbeResult result;
};
Cells to_table(const std::vector<VariantProbe>& probes);
Json to_json(const std::vector<VariantProbe>& probes);
/// Checks the probes of a model's config.
std::vector<VariantProbe> probed(const LoadedModel& model, const std::string& variant = "");

/// Reads a sentence as a user typed it. Throws UserError when it is not UTF-8, and what
/// `Task::read` throws.
Sentence read_sentence(const Task& task, const std::string& text);
Option target_option(std::string& target);
/// Gives a sentence the text that an encoder-decoder writes for it: `target`, or its own output.
/// Throws UserError for a target of other models.
void write_target(const LoadedModel& model, Sentence& sentence, const std::string& target);
/// The words of a sentence for a terminal, with visible white space; those that are asked about in
/// brackets: "[bank]".
std::vector<std::string> marked(const Sentence& sentence, std::span<const Index> asked);

/// Notes that a file was written.
void note_written(Document& document, const std::filesystem::path& file);

/// Notes unknown words, each once, and how many there are beyond the first twenty.
void note_unknown_words(Document& document, const Task& task, std::span<const Sentence> sentences);

/// The position of `word` in a sentence, or without one of the task's first target word. Throws
/// UserError when it is not there.
Index position_of(const Task& task, const Sentence& sentence, const std::string& word,
                  const std::string& text);

}  // namespace qkv::commands
