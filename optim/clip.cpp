#include "optim/clip.h"

namespace qkv {

double clip_norm(Gradients& gradients, double limit) {
  const double norm = gradients.norm();
  if (limit > 0 && norm > limit) gradients *= limit / norm;
  return norm;
}

void clip_value(Gradients& gradients, double limit) {
  if (limit > 0) gradients.clamp(limit);
}

}  // namespace qkv
