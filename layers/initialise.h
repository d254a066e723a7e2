#pragma once

#include "core/parameter.h"

namespace qkv {

/// Uniform over +-sqrt(6 / (in + out)) for a weight [out, in] (Glorot & Bengio 2010, "Understanding
/// the difficulty of training deep feedforward neural networks").
Initialiser xavier_uniform();

/// Uniform over +-sqrt(6 / fan-in) for a weight [out, in...] followed by a relu; the fan-in is the
/// number of inputs of an output (He et al. 2015, "Delving Deep into Rectifiers").
Initialiser kaiming_uniform();

/// Uniform over +-bound.
Initialiser uniform(double bound);

/// Normal with mean 0 and standard deviation `std` (0.02 in Radford et al. 2019, "Language Models
/// are Unsupervised Multitask Learners").
Initialiser normal(double std);

/// The identity matrix [size, size].
Tensor identity(Index size);

}  // namespace qkv
