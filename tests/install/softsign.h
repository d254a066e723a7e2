#pragma once

#include <qkv/core/autograd.h>
#include <qkv/core/xtensor.h>

/// x / (1 + |x|) (Turian et al. 2009, "Quadratic features and deep architectures for chunking"): an
/// op outside the library, written with xtensor.
inline qkv::Tensor softsign(const qkv::Tensor& x) {
  return qkv::dispatch(x.dtype(), [&]<class T>() {
    const auto elements = qkv::xtensor_view<T>(x);
    return qkv::record("softsign", qkv::from_xtensor<T>(elements / (1 + xt::abs(elements))), {x},
                       [x = x.detach()](const qkv::Tensor& dy, qkv::InputGradients& inputs) {
                         const auto v = qkv::xtensor_view<T>(x);
                         const auto d = qkv::xtensor_view<T>(dy);
                         inputs.add(0, qkv::from_xtensor<T>(d / xt::square(1 + xt::abs(v))));
                       });
  });
}
