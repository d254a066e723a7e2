// Regression on a table with a header and the target in the last column: a module of its own,
// mini-batches, a held-out fifth.
#include <fmt/format.h>
#include <qkv/datasets/batch.h>
#include <qkv/datasets/csv.h>
#include <qkv/layers/linear.h>
#include <qkv/optim/optimizer.h>
#include <qkv/train/storage/module_file.h>

#include <fstream>

struct Mlp : qkv::Module {
  qkv::Linear hidden, out;
  explicit Mlp(qkv::Index inputs) : hidden(inputs, 32), out(32, 1) {}
  qkv::Tensor operator()(const qkv::Tensor& x) const { return out(qkv::tanh(hidden(x))); }
  void visit(qkv::ModuleVisitor& visit) override { visit("hidden", hidden)("out", out); }
};

std::vector<std::vector<double>> rows_of(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::vector<double>> rows;
  qkv::CsvParser parser(file);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number)
    if (const auto record = parser.add(number, line); record && number > 1) {
      auto& row = rows.emplace_back();
      for (const std::string& field : record->fields) row.push_back(std::stod(field));
    }
  parser.finish();
  return rows;
}

// Inputs [rows, columns - 1] and targets [rows, 1] of some rows.
std::pair<qkv::Tensor, qkv::Tensor> taken(const std::vector<std::vector<double>>& rows,
                                          std::span<const qkv::Index> chosen) {
  std::vector<double> x, y;
  for (const qkv::Index i : chosen) {
    x.insert(x.end(), rows[i].begin(), rows[i].end() - 1);
    y.push_back(rows[i].back());
  }
  const qkv::Index count = std::ssize(chosen);
  return {qkv::Tensor::from(x, {count, std::ssize(x) / count}), qkv::Tensor::from(y, {count, 1})};
}

int main(int, char** arguments) {
  const auto rows = rows_of(arguments[1]);
  const auto order = qkv::Random(1, qkv::Purpose::shuffling).permutation(std::ssize(rows));
  const auto held_out = std::span(order).first(order.size() / 5),
             training = std::span(order).subspan(held_out.size());
  Mlp model(std::ssize(rows[0]) - 1);
  qkv::initialise(model, 1);
  const auto parameters = qkv::parameters(model);
  const auto optimizer = qkv::make_optimizer({.kind = qkv::OptimizerKind::adam});
  const qkv::BatchSampler batches(std::ssize(training), 16, 1);
  for (std::int64_t step = 0; step < 1000; ++step) {
    std::vector<qkv::Index> chosen;
    for (const qkv::Index i : batches.at(step)) chosen.push_back(training[i]);
    const auto [x, y] = taken(rows, chosen);
    optimizer->step(parameters, qkv::gradients_of(qkv::mean_squared_error(model(x), y)), 0.01,
                    step);
  }
  qkv::save("table.h5", model);
  Mlp loaded(std::ssize(rows[0]) - 1);
  qkv::load("table.h5", loaded);
  const qkv::NoGrad no_grad;
  const auto [x, y] = taken(rows, held_out);
  fmt::print("error {:.3f} of {} rows\n", qkv::mean_squared_error(loaded(x), y).item(),
             std::ssize(held_out));
}
