#pragma once

#include "core/autograd.h"

namespace qkv {

/// Scales the gradients so that their joint norm is at most `limit` and returns the norm before
/// (Pascanu et al. 2013, "On the difficulty of training recurrent neural networks"); a limit of 0
/// changes nothing. The factor is limit / norm, where PyTorch adds 1e-6 to the norm.
double clip_norm(Gradients& gradients, double limit);

/// Clamps every element of every gradient to [-limit, limit]; a limit of 0 changes nothing.
void clip_value(Gradients& gradients, double limit);

}  // namespace qkv
