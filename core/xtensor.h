#pragma once

#if __has_include(<xtensor/containers/xarray.hpp>)  // xtensor 0.26 and later
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xbuffer_adaptor.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xfunction.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/core/xoperation.hpp>
#include <xtensor/core/xstrides.hpp>
#include <xtensor/generators/xbuilder.hpp>
#include <xtensor/generators/xgenerator.hpp>
#include <xtensor/misc/xmanipulation.hpp>
#include <xtensor/misc/xsort.hpp>
#include <xtensor/reducers/xreducer.hpp>
#include <xtensor/views/xbroadcast.hpp>
#include <xtensor/views/xstrided_view.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xbroadcast.hpp>
#include <xtensor/xbuffer_adaptor.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xfunction.hpp>
#include <xtensor/xgenerator.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xoperation.hpp>
#include <xtensor/xreducer.hpp>
#include <xtensor/xsort.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xstrides.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor.h"

/// Tensors as xtensor expressions, and tensors from them. Needs Debian's libxtensor-dev; no other
/// header of the library includes xtensor.
///
/// Two rules hold for expressions of xtensor 0.24. One refers to its operands, so it is neither
/// kept with `auto` nor returned. A reducer (sum, amax, mean, ...) stands alone, to initialise an
/// array that expressions then use:
///
///     const xt::xarray<float> sums = xt::sum(x, {1}, xt::keep_dims);
///     return from_xtensor<float>(x / sums);
///
/// Inside an expression a lazy reducer reads freed memory, and with g++ 12 in C++20 an immediate
/// one (`xt::evaluation_strategy::immediate`) crashes.
namespace qkv {
namespace detail {

inline constexpr std::size_t any_rank = static_cast<std::size_t>(-1);

/// `Storage` as an xtensor of `rank` axes; its shape in `Sizes`.
template <class Storage, std::size_t rank>
struct XtensorOf {
  using Sizes = std::array<std::size_t, rank>;
  using type = xt::xtensor_adaptor<Storage, rank, xt::layout_type::row_major>;
};
template <class Storage>
struct XtensorOf<Storage, any_rank> {
  using Sizes = std::vector<std::size_t>;
  using type = xt::xarray_adaptor<Storage, xt::layout_type::row_major, Sizes>;
};

/// Throws ShapeError when `shape` has another rank.
template <std::size_t rank, class Storage>
auto as_xtensor(Storage storage, const Shape& shape) {
  require(rank == any_rank || static_cast<std::size_t>(shape.rank()) == rank,
          "[xtensor] a tensor of shape {} has {} axes, not {}", shape, shape.rank(), rank);
  typename XtensorOf<Storage, rank>::Sizes sizes{};
  if constexpr (rank == any_rank) sizes.resize(static_cast<std::size_t>(shape.rank()));
  std::copy(shape.begin(), shape.end(), sizes.begin());
  return typename XtensorOf<Storage, rank>::type(std::move(storage), sizes);
}

/// Whether an expression is or holds a reducer that is not evaluated yet.
template <class E>
constexpr bool has_lazy_reducer = false;
template <class F, class CT, class X, class O>
constexpr bool has_lazy_reducer<xt::xreducer<F, CT, X, O>> = true;
template <class F, class... CT>
constexpr bool has_lazy_reducer<xt::xfunction<F, CT...>> = (has_lazy_reducer<std::decay_t<CT>> ||
                                                            ...);
template <class CT, class X>
constexpr bool has_lazy_reducer<xt::xbroadcast<CT, X>> = has_lazy_reducer<std::decay_t<CT>>;
template <class CT, class S, xt::layout_type L, class FST>
constexpr bool has_lazy_reducer<xt::xstrided_view<CT, S, L, FST>> =
    has_lazy_reducer<std::decay_t<CT>>;

}  // namespace detail

/// The elements of `x` as a constant xtensor of type T, without a copy. It shares the memory and
/// keeps it alive. With `rank` the number of axes is fixed, which makes loops over it quicker.
/// Throws TypeError when T is not the tensor's type and ShapeError when it has another rank.
template <class T, std::size_t rank = detail::any_rank>
auto xtensor_view(const Tensor& x) {
  using Owner = std::shared_ptr<const Tensor>;
  return detail::as_xtensor<rank>(
      xt::xbuffer_adaptor<const T*, xt::smart_ownership, Owner>(
          x.data<T>().data(), x.data<T>().size(), std::make_shared<const Tensor>(x.detach())),
      x.shape());
}

/// A view to write to, as long as `x` lives and before anyone else holds its memory. Throws
/// ValueError when another tensor or view shares it: a tensor never changes under its users.
template <class T, std::size_t rank = detail::any_rank>
auto mutable_xtensor_view(Tensor& x) {
  const std::span<T> elements = x.mutable_data<T>();
  return detail::as_xtensor<rank>(xt::xbuffer_adaptor<T*>(elements.data(), elements.size()),
                                  x.shape());
}

/// A tensor with the values of an xtensor expression, each computed once and stored straight into
/// the tensor's memory. T is float or double and by default the expression's type; xtensor computes
/// `0.5 * x` of a float32 x in float64, so ops name T. Throws ShapeError for more than
/// `Shape::max_rank` axes.
template <class T = void, class E>
Tensor from_xtensor(const xt::xexpression<E>& expression) {
  using Value = std::conditional_t<std::is_void_v<T>, typename E::value_type, T>;
  static_assert(std::is_same_v<Value, float> || std::is_same_v<Value, double>,
                "a tensor holds float or double: name one, as in from_xtensor<float>(...)");
  static_assert(
      !detail::has_lazy_reducer<E>,
      "initialise an array with the reducer first: xt::xarray<T> sums = xt::sum(x, {1});");
  const E& values = expression.derived_cast();
  const std::vector<Index> sizes(values.shape().begin(), values.shape().end());
  Tensor result = Tensor::empty(Shape(sizes), dtype_of<Value>);
  // Without elements xtensor computes addresses before the first.
  if (result.size() == 0) return result;
  auto to = mutable_xtensor_view<Value>(result);
  xt::noalias(to) = values;
  return result;
}

}  // namespace qkv
