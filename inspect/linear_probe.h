#pragma once

#include <string>
#include <vector>

#include "inspect/explain.h"

namespace qkv {

/// A classifier by ridge regression: the label whose score x W + b is highest, where W and b
/// minimize the squared distance from the labels' one-hot vectors plus `penalty` |W|^2 (Hoerl &
/// Kennard 1970). In float64.
class RidgeClassifier {
 public:
  /// x [N, D], labels in [0, classes).
  RidgeClassifier(const Tensor& x, std::span<const Index> labels, Index classes, double penalty);

  /// x [N, D] -> N labels.
  std::vector<Index> predict(const Tensor& x) const;

 private:
  Tensor mean_, weight_, bias_;  ///< [1, D], [D, classes], [1, classes]
};

/// The results of a linear probe of one residual state.
struct LayerProbe {
  std::string label;   ///< "input", "layer 0", "contextual"
  double accuracy;     ///< of the labels, on the test texts
  double control;      ///< of the control task
  double selectivity;  ///< how much better the labels are learned than the control task
};

/// Linear probes (Alain & Bengio 2017) of the word that is asked about, or of the mean over the
/// words of a text, by residual state: is the label there?
///
/// The control task (Hewitt & Liang 2019, "Designing and Interpreting Probes with Control Tasks")
/// gives each type of word that is asked about a random label: only a probe that memorises solves
/// it. Where one word alone is asked about, each training text has a random label of its own, and
/// selectivity compares accuracies on the training texts.
///
/// Throws UserError when a file has no labels that the model knows.
std::vector<LayerProbe> linear_probes(const LoadedModel& trained,
                                      const std::vector<LabelledText>& train,
                                      const std::vector<LabelledText>& test,
                                      ReadCallback& callback);

}  // namespace qkv
