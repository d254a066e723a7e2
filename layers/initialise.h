#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace qkv {

/// Uniform over +-sqrt(6 / (in + out)) for a weight [out, in] (Glorot & Bengio 2010, "Understanding
/// the difficulty of training deep feedforward neural networks").
Tensor xavier_uniform(Index out, Index in, const Random& random);

/// Uniform over +-sqrt(6 / fan-in) for a weight [out, in...] followed by a relu; the fan-in is the
/// number of inputs of an output (He et al. 2015, "Delving Deep into Rectifiers").
Tensor kaiming_uniform(const Shape& shape, const Random& random);

/// Uniform over +-bound.
Tensor uniform(const Shape& shape, double bound, const Random& random);

/// Normal with mean 0 and standard deviation `std`, truncated at two of it: values beyond are drawn
/// anew (Devlin et al. 2019, "BERT", as Abadi et al. 2016, "TensorFlow", name it).
Tensor truncated_normal(const Shape& shape, double std, const Random& random);

/// Normal with mean 0 and standard deviation `std` (0.02 in Radford et al. 2019, "Language Models
/// are Unsupervised Multitask Learners").
Tensor normal(const Shape& shape, double std, const Random& random);

/// The identity matrix [size, size].
Tensor identity(Index size);

}  // namespace qkv
