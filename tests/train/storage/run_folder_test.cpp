#include "train/storage/run_folder.h"

#include <doctest/doctest.h>

#include "tests/support/errors.h"
#include "tests/support/system_calls.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

Checkpoint of_step(std::int64_t step) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.model["w"] = Tensor::full({2}, static_cast<double>(step));
  return checkpoint;
}

}  // namespace

TEST_CASE("the checkpoint of a run folder is the best, else the last, else the newest") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  folder.create();
  CHECK(error_of<UserError>([&] { find_checkpoint(folder.path()); }) ==
        folder.path().string() + " holds no checkpoint; is it the folder of a run?");
  folder.save(of_step(1), false, 3);
  folder.save(of_step(2), true, 3);
  folder.save(of_step(3), false, 3);
  const auto step = [&] { return read_checkpoint(find_checkpoint(folder.path())).step; };
  CHECK(step() == 2);
  std::filesystem::remove(folder.best());
  CHECK(step() == 3);
  std::filesystem::remove(folder.last());
  CHECK(find_checkpoint(folder.path()) == folder.checkpoint(3));
  CHECK(find_checkpoint(folder.checkpoint(1)) == folder.checkpoint(1));
}

TEST_CASE("a run folder keeps the newest checkpoints, its best and its last") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  folder.create();
  for (const std::int64_t step : {1, 2, 3, 4}) folder.save(of_step(step), step == 1, 2);
  CHECK(folder.checkpoints() == std::vector{folder.checkpoint(4), folder.checkpoint(3)});
  CHECK(read_checkpoint(folder.best()).step == 1);
  CHECK(read_checkpoint(folder.last()).step == 4);
}

TEST_CASE("every checkpoint is flushed before it gets its name, and its name afterwards") {
  const TempDir dir;
  const RunFolder folder(std::filesystem::canonical(dir.path()) / "run");
  folder.create();
  SystemCalls calls;
  folder.save(of_step(1), true, 3);
  // "fsync F", "rename F NAME", "fsync FOLDER" for the file of the step, and the last two for each
  // of its other names.
  std::vector<std::string> order;
  for (const std::string& call : calls.all()) {
    const std::string what = call.substr(0, call.find(' ')), operand = call.substr(what.size() + 1);
    if (what == "fsync" && std::filesystem::is_directory(operand))
      order.emplace_back("fsync folder");
    else
      order.push_back(what == "fsync" ? "fsync file" : what);
  }
  CHECK(order == std::vector<std::string>{"write", "fsync file", "rename", "fsync folder",  //
                                          "link", "rename", "fsync folder",                 //
                                          "link", "rename", "fsync folder"});
}
