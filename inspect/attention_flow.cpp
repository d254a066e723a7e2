#include "inspect/attention_flow.h"

#include <cmath>

namespace qkv {
namespace {

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[k].size(); ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}

Matrix to_matrix(const Tensor& weights) {
  const auto columns = weights.dim(1);
  const auto values = weights.values();
  Matrix matrix;
  for (auto next = values.begin(); next != values.end(); next += columns)
    matrix.emplace_back(next, next + columns);
  return matrix;
}

/// The variance of each row's numbers where the mask is not 0; its mean over rows.
double score_variance(const Matrix& scores, const Matrix& mask) {
  double total = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    double count = 0, sum = 0, squares = 0;
    for (std::size_t j = 0; j < scores[i].size(); ++j) {
      count += mask[i][j];
      sum += mask[i][j] * scores[i][j];
      squares += mask[i][j] * scores[i][j] * scores[i][j];
    }
    if (count > 0) total += squares / count - sum / count * (sum / count);
  }
  return total / static_cast<double>(scores.size());
}

}  // namespace

std::vector<AttentionSteps> self_attention_steps(const Recorder& recorder) {
  auto modules = attention_steps(recorder);
  std::erase_if(modules, [](const AttentionSteps& module) { return module.cross; });
  return modules;
}

LayerWeights self_attention(const Recorder& recorder) {
  LayerWeights layers;
  for (const AttentionSteps& module : self_attention_steps(recorder)) {
    auto& heads = layers.emplace_back();
    for (const HeadSteps& head : module.heads) heads.push_back(to_matrix(head.weights));
  }
  return layers;
}

Matrix rollout(const LayerWeights& layers) {
  const std::size_t time = layers.at(0).at(0).size();
  Matrix flow(time, std::vector<double>(time));
  for (std::size_t i = 0; i < time; ++i) flow[i][i] = 1;
  for (const auto& heads : layers) {
    Matrix step(time, std::vector<double>(time));
    for (std::size_t i = 0; i < time; ++i) {
      step[i][i] = 0.5;
      for (const Matrix& head : heads)
        for (std::size_t j = 0; j < time; ++j)
          step[i][j] += 0.5 * head[i][j] / static_cast<double>(heads.size());
    }
    flow = product(step, flow);
  }
  return flow;
}

double entropy(const Matrix& weights) {
  double total = 0;
  for (const auto& row : weights)
    for (const double w : row)
      if (w > 0) total -= w * std::log2(w);
  return total / static_cast<double>(weights.size());
}

HeadHabits habits(const Matrix& weights) {
  HeadHabits sum;
  const std::size_t time = weights.size();
  const double share = 1 / static_cast<double>(time);
  for (std::size_t i = 0; i < time; ++i) {
    const auto& row = weights[i];
    sum.self += share * row[i];
    if (i > 0) sum.previous += share * row[i - 1];
    if (i + 1 < time) sum.next += share * row[i + 1];
    sum.first += share * row.front();
    sum.last += share * row.back();
    for (std::size_t j = 0; j < time; ++j)
      sum.distance += share * row[j] * std::abs(static_cast<double>(i) - static_cast<double>(j));
  }
  sum.entropy = entropy(weights);
  return sum;
}

HeadHabits habits(const AttentionSteps& module, std::size_t head) {
  const HeadSteps& steps = module.heads.at(head);
  HeadHabits result = habits(to_matrix(steps.weights));
  result.score_variance = score_variance(to_matrix(steps.scaled), to_matrix(module.mask));
  return result;
}

HeadHabits mean_habits(const std::vector<HeadHabits>& all) {
  HeadHabits mean;
  const double share = all.empty() ? 0 : 1 / static_cast<double>(all.size());
  for (const HeadHabits& one : all)
    for (const auto member :
         {&HeadHabits::entropy, &HeadHabits::self, &HeadHabits::previous, &HeadHabits::next,
          &HeadHabits::first, &HeadHabits::last, &HeadHabits::distance, &HeadHabits::score_variance,
          &HeadHabits::answer})
      mean.*member += share * one.*member;
  return mean;
}

}  // namespace qkv
