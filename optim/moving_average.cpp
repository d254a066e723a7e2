#include "optim/moving_average.h"

#include "core/parallel.h"

namespace qkv {
namespace {

/// average = decay average + (1 - decay) value, element by element.
void approach(Tensor& average, const Tensor& value, double decay) {
  average = copy_if_shared(std::move(average));
  dispatch(value.dtype(), [&]<class T>() {
    T* to = average.mutable_data<T>().data();
    const T* from = value.data<T>().data();
    const T kept = static_cast<T>(decay), taken = static_cast<T>(1 - decay);
    parallel_for(partition(value.size(), 1), [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) to[i] = kept * to[i] + taken * from[i];
    });
  });
}

}  // namespace

MovingAverage::MovingAverage(double decay) : decay_(decay) {
  require<ValueError>(decay >= 0 && decay < 1, "[moving average] decay must be in [0, 1), got {}",
                      decay);
}

void MovingAverage::update(std::span<const NamedParameter> parameters) {
  for (const auto& [path, parameter] : parameters) {
    const Tensor& value = parameter->value();
    Tensor& average = values_[path];
    if (average)
      approach(average, value, decay_);
    else
      average = copy_if_shared(value);
  }
}

UseAverage::UseAverage(std::span<const NamedParameter> parameters, const MovingAverage& average) {
  for (const auto& [path, parameter] : parameters) {
    const auto found = average.values().find(path);
    if (found == average.values().end()) continue;
    own_.emplace_back(parameter, parameter->value().detach());
    parameter->assign(found->second);
  }
}

UseAverage::~UseAverage() {
  for (const auto& [parameter, value] : own_) parameter->assign(value);
}

}  // namespace qkv
