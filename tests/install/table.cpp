// Regression on a table with a header and the target in the last column: a module of its own that
// normalises its columns, mini-batches, a held-out fifth.
#include <fmt/format.h>
#include <qkv/core/ops.h>
#include <qkv/datasets/batch.h>
#include <qkv/datasets/csv.h>
#include <qkv/layers/linear.h>
#include <qkv/optim/optimizer.h>
#include <qkv/train/storage/module_file.h>

#include <cmath>

struct Mlp : qkv::Module {
  // Means and standard deviations of inputs and target, [columns]: saved with the module, and not
  // trained.
  qkv::Parameter means, deviations;
  qkv::Linear hidden, out;
  explicit Mlp(qkv::Index columns)
      : means(qkv::Tensor::zeros({columns})),
        deviations(qkv::Tensor::full({columns}, 1)),
        hidden(columns - 1, 32),
        out(32, 1) {
    means.freeze();
    deviations.freeze();
  }
  // [rows, columns - 1] -> [rows, 1], in the units of the table
  qkv::Tensor operator()(const qkv::Tensor& x) const {
    const qkv::Index inputs = x.dim(1);
    const auto of_inputs = [&](const qkv::Tensor& each) { return slice(each, 0, 0, inputs); };
    const auto of_target = [&](const qkv::Tensor& each) {
      return slice(each, 0, inputs, inputs + 1);
    };
    const qkv::Tensor y = out(tanh(hidden((x - of_inputs(means)) / of_inputs(deviations))));
    return y * of_target(deviations) + of_target(means);
  }
  void visit(qkv::ModuleVisitor& visit) override {
    visit("means", means)("deviations", deviations)("hidden", hidden)("out", out);
  }
};

// The rows of a CSV without its header.
std::vector<std::vector<double>> rows_of(const std::string& file) {
  std::vector<std::vector<double>> rows;
  qkv::ReadCallback silent;
  qkv::for_each_record(file, silent, [&](const qkv::CsvRecord& record) {
    if (record.line == 1) return;
    auto& row = rows.emplace_back();
    for (const std::string& field : record.fields) row.push_back(std::stod(field));
  });
  return rows;
}

// Some rows, [rows, columns].
qkv::Tensor taken(const std::vector<std::vector<double>>& rows,
                  std::span<const qkv::Index> chosen) {
  std::vector<double> values;
  for (const qkv::Index i : chosen) values.insert(values.end(), rows[i].begin(), rows[i].end());
  return qkv::Tensor::from(values, {std::ssize(chosen), std::ssize(rows[0])});
}

// The root mean squared error.
double error(const qkv::Tensor& predicted, const qkv::Tensor& expected) {
  return std::sqrt(qkv::mean_squared_error(predicted, expected).item());
}

int main(int, char** arguments) try {
  const auto rows = rows_of(arguments[1]);
  const qkv::Index columns = std::ssize(rows.at(0)), inputs = columns - 1;
  const auto order = qkv::Random(1, qkv::Purpose::shuffling).permutation(std::ssize(rows));
  const auto held_out = std::span(order).first(order.size() / 5),
             training = std::span(order).subspan(held_out.size());
  Mlp model(columns);
  qkv::initialise(model, 1);
  const qkv::Tensor table = taken(rows, training);
  model.means.assign(mean(table, 0));
  model.deviations.assign(sqrt(variance(table, 0) + 1e-12));
  const auto parameters = qkv::parameters(model);
  const auto optimizer = qkv::make_optimizer({.kind = qkv::OptimizerKind::adam});
  const qkv::BatchSampler batches(std::ssize(training), 16, 1);
  for (std::int64_t step = 0; step < 1000; ++step) {
    std::vector<qkv::Index> chosen;
    for (const qkv::Index i : batches.at(step)) chosen.push_back(training[i]);
    const qkv::Tensor batch = taken(rows, chosen);
    optimizer->step(parameters,
                    gradients_of(mean_squared_error(model(slice(batch, 1, 0, inputs)),
                                                    slice(batch, 1, inputs, columns))),
                    0.01, step);
  }
  qkv::save("table.h5", model);
  Mlp loaded(columns);
  qkv::load("table.h5", loaded);
  const qkv::NoGrad no_grad;
  const qkv::Tensor test = taken(rows, held_out), y = slice(test, 1, inputs, columns);
  fmt::print("error {:.3f} of {} rows; of the mean {:.3f}\n",
             error(loaded(slice(test, 1, 0, inputs)), y), std::ssize(held_out),
             error(qkv::Tensor::full(y.shape(), mean(table, 0)(-1)), y));
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
