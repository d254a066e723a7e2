#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "inspect/cpp_model/layers.h"

namespace qkv_model {

/// Layers of an RNN, a GRU or an LSTM, with parameters as PyTorch's, of one direction or of both.
class Recurrent {
 public:
  /// Nothing is kept: a text is read from its beginning again.
  struct Cache {
    std::size_t length = 0;
  };

  Recurrent() {
    for (std::size_t i = 0; i < description().layers; ++i) {
      const std::string layer = "_l" + std::to_string(i);
      forward_.emplace_back(layer);
      if (weights_of("recurrent.weight_ih" + layer + "_reverse"))
        backward_.emplace_back(layer + "_reverse");
    }
  }

  /// One vector for each token, [time, width].
  Matrix operator()(const Ids& ids) const {
    Matrix x = embedded(ids);
    for (std::size_t i = 0; i < forward_.size(); ++i) {
      Matrix y(x.rows(), description().width);
      forward_[i].run(x, false, 0, y);
      if (!backward_.empty()) backward_[i].run(x, true, description().width / 2, y);
      x = std::move(y);
    }
    return x;
  }
  Matrix operator()(const Ids& ids, Cache&) const { return (*this)(ids); }

  /// The last state of each direction.
  Matrix sentence(const Matrix& x) const {
    Matrix last = x.one_row(x.rows() - 1);
    if (!backward_.empty())
      std::copy(x.row(0) + x.width / 2, x.row(0) + x.width, last.row(0) + x.width / 2);
    return last;
  }

 private:
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  struct Direction {
    explicit Direction(const std::string& suffix)
        : of_input(weights_of("recurrent.weight_ih" + suffix),
                   weights_of("recurrent.bias_ih" + suffix)),
          of_state(weights_of("recurrent.weight_hh" + suffix),
                   weights_of("recurrent.bias_hh" + suffix)) {}

    /// Writes the states to y, from column `begin` on.
    void run(const Matrix& x, bool reverse, std::size_t begin, Matrix& y) const {
      const std::size_t width = of_state.weight.columns, gates = of_state.weight.rows / width;
      const Matrix inputs = of_input(x);
      Matrix state(1, width);
      Vector cell(width);
      for (std::size_t step = 0; step < x.rows(); ++step) {
        const std::size_t t = reverse ? x.rows() - 1 - step : step;
        const Matrix states = of_state(state);
        for (std::size_t i = 0; i < width; ++i) {
          const auto input = [&](std::size_t gate) { return inputs.row(t)[gate * width + i]; };
          const auto recurrent = [&](std::size_t gate) { return states.values[gate * width + i]; };
          const auto sum = [&](std::size_t gate) { return input(gate) + recurrent(gate); };
          double& h = state.values[i];
          if (gates == 1) {  // RNN
            h = std::tanh(sum(0));
          } else if (gates == 3) {  // GRU: reset, update, new
            const double update = sigmoid(sum(1));
            const double next = std::tanh(input(2) + sigmoid(sum(0)) * recurrent(2));
            h = (1 - update) * next + update * h;
          } else {  // LSTM: input, forget, cell, output
            cell[i] = sigmoid(sum(1)) * cell[i] + sigmoid(sum(0)) * std::tanh(sum(2));
            h = sigmoid(sum(3)) * std::tanh(cell[i]);
          }
          y.row(t)[begin + i] = h;
        }
      }
    }

    Linear of_input, of_state;
  };

  std::vector<Direction> forward_, backward_;
};

}  // namespace qkv_model
