#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/parameter.h"

namespace qkv {

/// Summary statistics of a tensor's elements.
struct Statistics {
  double norm, mean, std, min, max;
  double zeros;                  ///< fraction of elements that are exactly 0
  std::vector<Index> histogram;  ///< counts in `histogram_bins` equal intervals from min to max
};
constexpr std::size_t histogram_bins = 16;
Statistics statistics(const Tensor& x);

/// Singular values of a head's weight products, descending, at most d_k.
struct HeadSpectrum {
  std::string path;  ///< of the attention module
  Index head;
  std::vector<double> qk;  ///< of W_q W_k^T, from which scores come; empty when none are learned
  std::vector<double> ov;  ///< of W_v W_o, through which values reach the output
};
/// The spectra of every head of every attention module of a model that projects values.
std::vector<HeadSpectrum> head_spectra(Module& model);

/// The change of a parameter between two models.
struct Change {
  std::string path;
  double norm, norm_before, distance;  ///< |w|, |w0|, |w - w0|
  double cosine;                       ///< of w and w0; 0 when one of them is zero
  double relative() const { return norm_before > 0 ? distance / norm_before : distance; }
};
/// The changes of parameters that both have, the largest relative one first. Throws ShapeError when
/// one has another shape.
std::vector<Change> changes(const std::vector<NamedParameter>& now,
                            const std::vector<NamedParameter>& before);

}  // namespace qkv
