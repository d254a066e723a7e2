#include "layers/convolution.h"

#include <array>

#include "layers/initialise.h"
#include "layers/padding.h"

namespace qkv {
namespace {

constexpr std::array<Index, 3> kernel_widths = {3, 4, 5};  // Kim 2014, 3.1

struct ConvolutionModel final : Model {
  ConvolutionModel(const ModelOptions& options, Index vocabulary)
      : Model(options, vocabulary), dropout(options.dropout) {
    for (Index i = 0; i < options.layers; ++i) layers.emplace_back(options.width);
  }

  Tensor operator()(const Indices& ids, const Indices& lengths, Context& context) const override {
    Tensor x = embedded(ids, lengths, context);
    for (const ConvolutionLayer& layer : layers) x = layer(context.dropped(x, dropout), lengths);
    return contextual(x, context);
  }
  Tensor sentence(const Tensor& x, const Indices& lengths) const override {
    return masked_max(x, lengths);
  }
  void visit(ModuleVisitor& visit) override {
    visit("embedding", embedding)("convolution.layers", layers);
  }

  double dropout;
  std::vector<ConvolutionLayer> layers;
};

}  // namespace

Conv1d::Conv1d(Index in, Index out, Index kernel)
    : weight({out, in, kernel}, kaiming_uniform()), bias(Tensor::zeros({out}), Role::bias) {}

Tensor Conv1d::operator()(const Tensor& x) const {
  const Index kernel = weight.shape()[2];
  return conv1d(pad(x, 1, (kernel - 1) / 2, kernel / 2), weight, bias);
}

void Conv1d::visit(ModuleVisitor& visit) {
  visit("weight", weight)("bias", bias);
}

ConvolutionLayer::ConvolutionLayer(Index width) {
  constexpr Index count = kernel_widths.size();
  require<ValueError>(width >= count,
                      "[convolution] {} kernels need a width of {} at least, got {}", count, count,
                      width);
  for (Index i = 0; i < count; ++i)
    kernels.emplace_back(width, width * (i + 1) / count - width * i / count,
                         kernel_widths[static_cast<std::size_t>(i)]);
}

Tensor ConvolutionLayer::operator()(const Tensor& x, const Indices& lengths) const {
  const Tensor real = without_padding(x, lengths);
  std::vector<Tensor> parts;
  for (const Conv1d& kernel : kernels) parts.push_back(relu(kernel(real)));
  return concatenate(parts, 2);
}

std::unique_ptr<Model> make_convolution_model(const ModelOptions& options, Index vocabulary) {
  return std::make_unique<ConvolutionModel>(options, vocabulary);
}

}  // namespace qkv
