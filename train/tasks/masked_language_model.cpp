#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "datasets/batch.h"
#include "train/tasks/choice_metrics.h"
#include "train/tasks/example_task.h"
#include "train/tasks/kinds.h"

namespace qkv {
namespace {

constexpr double masked_fraction = 0.8, replaced_fraction = 0.1;

/// A vocabulary has more tokens than anybody reads.
void keep_most_probable(Prediction& prediction) {
  constexpr std::size_t most = 10;
  std::vector<std::size_t> order(prediction.choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t i) { return prediction.logits[i]; });
  order.resize(std::min(order.size(), most));
  const auto keep = [&](auto& values) {
    const auto all = std::exchange(values, {});
    for (const std::size_t i : order) values.push_back(all[i]);
  };
  keep(prediction.choices);
  keep(prediction.logits);
  keep(prediction.probabilities);
}

/// Which tokens are masked? Each is predicted from those on both sides (Devlin et al. 2019, "BERT",
/// 3.1). Of a sentence's n tokens, task.mask_probability n are chosen, rounded and at least one; of
/// these 80 % are replaced by the mask token, 10 % by a random token, and 10 % stay. Training draws
/// anew at every step, evaluation for each sentence the same each time. Unknown tokens are not
/// chosen.
///
/// The mask token is <unk>: a word that fine-tuning or a user brings, and that the model does not
/// know, has the vector of a word that is to be guessed from its context. An imported BERT has a
/// mask token of its own, "[MASK]".
///
/// A line of a file is a sentence, of a line with tabs its last column; longer ones are divided
/// into parts of model.max_length.
class MaskedLanguageModel final : public RowTask<EncodedTexts, MaskedTokenMetrics> {
 public:
  explicit MaskedLanguageModel(const Config& config) : RowTask(config) {}

  /// Its targets are the tokens written as `mask_text`.
  Sentence read(std::string_view text) const override {
    const auto pieces = cut_sentence(text, cutting()).pieces,
               mask = cut_phrase(mask_text, cutting()).pieces;
    Sentence sentence;
    for (auto at = pieces.begin();;) {
      const auto found = pieces.begin() + find_phrase(pieces, mask, at - pieces.begin());
      const Sentence before = sentence_of({at, found});
      sentence.words.insert(sentence.words.end(), before.words.begin(), before.words.end());
      sentence.ids.insert(sentence.ids.end(), before.ids.begin(), before.ids.end());
      if (found == pieces.end()) break;
      sentence.targets.push_back(std::ssize(sentence.ids));
      sentence.words.emplace_back(mask_text);
      sentence.ids.push_back(mask_id());
      at = found + std::ssize(mask);
    }
    return fitted(std::move(sentence));
  }

  /// The answer is the token at the line's index.
  LabelledText read_line(const TsvRow& row) const override {
    LabelledText line = Reader::read_line(row);
    if (row.fields.size() > 1) line.label = row.fields.front();
    if (line.index >= 0) {
      const std::int32_t id = line.sentence.ids[static_cast<std::size_t>(line.index)];
      if (id != mask_id() && !vocabulary().is_unknown(id)) line.answer = id;
    }
    return line;
  }

  std::string refusal(const Sentence& sentence, std::string_view text) const override {
    if (!sentence.targets.empty()) return "";
    return fmt::format("\"{}\" has no {}; write it in place of each word to predict", text,
                       mask_text);
  }
  /// The ten most probable choices.
  std::vector<Prediction> answers(const Network& network, std::span<const AnswerTarget> targets,
                                  Context& context) const override {
    std::vector<Prediction> answers;
    for (const AnswerTarget& target : targets) {  // each has the whole vocabulary for a moment
      answers.push_back(std::move(RowTask::answers(network, {&target, 1}, context).front()));
      keep_most_probable(answers.back());
    }
    return answers;
  }

 private:
  /// A sentence with some tokens replaced.
  struct Masked {
    std::vector<std::int32_t> ids;
    std::vector<Index> positions;  ///< of the tokens to predict
  };

  std::int32_t mask_id() const {
    return cutting().kind == TokenizerKind::word_piece ? vocabulary().id(mask_text)
                                                       : Vocabulary::unknown;
  }
  void add_file(const std::filesystem::path& file, Rows& rows,
                ReadCallback& callback) const override {
    add_sentences(file, cutting(), rows, callback);
  }
  EncodedTexts encoded(const Rows& rows, std::span<const Index> chosen,
                       ReadCallback&) const override {
    const CorpusEncoder encoder(rows.corpus, tokenizer());
    const Index ends = tokenizer().special_tokens(), longest = max_length() - 2 * ends;
    EncodedTexts texts;
    for (const Index text : chosen) {
      const std::vector<std::int32_t> ids = encoder.ids(text);
      if (ids.empty()) continue;
      const auto begin = ids.begin() + ends, end = ids.end() - ends;
      std::vector<std::int32_t> part;
      for (auto at = begin; at < end; at += std::min<Index>(longest, end - at)) {
        part.assign(ids.begin(), begin);
        part.insert(part.end(), at, at + std::min<Index>(longest, end - at));
        part.insert(part.end(), end, ids.end());
        const auto is_text = [&](std::int32_t id) { return tokenizer().is_text(id); };
        if (std::ranges::any_of(part, is_text)) texts.sentences.add(part);
      }
    }
    return texts;
  }

  void check_training() override {
    require<UserError>(
        size(Split::train) > 0,
        "{}: no token occurs task.min_count = {} times, so that none can be predicted",
        source_of(options()), options().min_count);
  }

  LabelledText example_of(const EncodedTexts& texts, Index i) const override {
    return text_of_ids(texts.sentences[i]);
  }
  Masked masked(std::span<const std::int32_t> ids, const Random& random) const {
    std::vector<Index> known;
    for (Index i = 0; i < std::ssize(ids); ++i)
      if (tokenizer().is_text(ids[static_cast<std::size_t>(i)])) known.push_back(i);
    const Index count =
        std::clamp<Index>(std::lround(options().mask_probability * static_cast<double>(ids.size())),
                          1, std::ssize(known));
    Masked result{{ids.begin(), ids.end()}, {}};
    // The permutation takes the draws up to the number of known tokens.
    std::uint64_t next = known.size() + 1;
    for (const Index i : random.permutation(std::ssize(known))) {
      if (std::ssize(result.positions) == count) break;
      const Index position = known[static_cast<std::size_t>(i)];
      result.positions.push_back(position);
      std::int32_t& id = result.ids[static_cast<std::size_t>(position)];
      const double kind = random.uniform(next++);
      const auto token = static_cast<Index>(random.bits(next++));
      constexpr Index first = Vocabulary::unknown + 1;
      if (kind < masked_fraction)
        id = mask_id();
      else if (kind < masked_fraction + replaced_fraction)
        id = static_cast<std::int32_t>(first + token % (vocabulary().size() - first));
    }
    return result;
  }

  BatchLoss batch_loss(const Network& network, const EncodedTexts& texts,
                       std::span<const Index> chosen, Context& context,
                       MaskedTokenMetrics* metrics) const override {
    std::vector<Masked> sentences;
    std::vector<std::span<const std::int32_t>> ids;
    sentences.reserve(chosen.size());
    for (const Index i : chosen) {
      const auto text = texts.sentences[i];
      const Random random = context.training() ? context.next_random() : drawn_for(text);
      ids.push_back(sentences.emplace_back(masked(text, random)).ids);
    }
    const TokenBatch batch = pad(ids);
    const Index time = batch.ids.dim(1);
    std::vector<std::int32_t> rows, right;
    for (std::size_t b = 0; b < sentences.size(); ++b) {
      const auto whole = texts.sentences[chosen[b]];
      for (const Index position : sentences[b].positions) {
        rows.push_back(static_cast<std::int32_t>(static_cast<Index>(b) * time + position));
        right.push_back(whole[static_cast<std::size_t>(position)]);
      }
    }
    const Index count = std::ssize(rows);
    const Tensor x = (*network.model)(batch.ids, batch.lengths, context);
    // Logits of the masked positions alone: those of a large vocabulary are what takes the most
    // time.
    const Tensor at_masks = embedding(reshape(x, {-1, x.dim(2)}), Indices(rows, {count}));
    const Tensor logits = network.logits(at_masks);
    const Indices answers(right, {count});
    if (metrics) metrics->update(logits, answers);
    return {cross_entropy(logits, answers), count};
  }

  MaskedTokenMetrics metrics() const override { return {}; }
};

}  // namespace

std::unique_ptr<Task> make_masked_language_model(const Config& config,
                                                 const Task::Vocabularies& known,
                                                 ReadCallback* callback) {
  return made<MaskedLanguageModel>(config, known, callback);
}

}  // namespace qkv
