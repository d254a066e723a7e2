#include "train/storage/run_folder.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/system_calls.h"
#include "tests/support/temp_dir.h"

using namespace qkv;

namespace {

Checkpoint of_step(std::int64_t step, std::int64_t best_step) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.progress["best_step"] = static_cast<double>(best_step);
  checkpoint.model["w"] = Tensor::full({2}, static_cast<double>(step));
  return checkpoint;
}

}  // namespace

TEST_CASE("the checkpoint of a run folder is the best, also where best.h5 is missing") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  folder.create();
  CHECK(folder.newest_step() == 0);
  CHECK(error_of<UserError>([&] { find_checkpoint(folder.path()); }) ==
        folder.path().string() + " holds no checkpoint; is it the folder of a run?");
  folder.save(of_step(1, 0), 3);
  CHECK(find_checkpoint(folder.path()) == folder.checkpoint(1));
  folder.save(of_step(2, 2), 3);
  folder.save(of_step(3, 2), 3);
  const auto step = [&] { return read_checkpoint(find_checkpoint(folder.path())).step; };
  CHECK(step() == 2);
  std::filesystem::remove(folder.best());
  CHECK(find_checkpoint(folder.path()) == folder.checkpoint(2));
  std::filesystem::remove(folder.last());
  CHECK(find_checkpoint(folder.path()) == folder.checkpoint(2));
  std::ofstream(folder.checkpoint(3)) << "damaged";
  CHECK(find_checkpoint(folder.path()) == folder.checkpoint(2));
  CHECK(find_checkpoint(folder.checkpoint(1)) == folder.checkpoint(1));
}

TEST_CASE(
    "without a best step in its checkpoints, a run folder has its best, else its last, else its "
    "newest") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  folder.create();
  for (const std::int64_t step : {1, 2, 3}) {
    Checkpoint checkpoint = of_step(step, 0);
    checkpoint.progress.clear();
    write_checkpoint(folder.checkpoint(step), checkpoint);
  }
  std::filesystem::copy_file(folder.checkpoint(1), folder.best());
  std::filesystem::copy_file(folder.checkpoint(2), folder.last());
  CHECK(find_checkpoint(folder.path()) == folder.best());
  std::filesystem::remove(folder.best());
  CHECK(find_checkpoint(folder.path()) == folder.last());
  std::filesystem::remove(folder.last());
  CHECK(find_checkpoint(folder.path()) == folder.checkpoint(3));
}

TEST_CASE("a run folder keeps the newest checkpoints, its best and its last") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  folder.create();
  for (const std::int64_t step : {1, 2, 3, 4}) folder.save(of_step(step, 1), 2);
  CHECK(folder.checkpoints() ==
        std::vector{folder.checkpoint(4), folder.checkpoint(3), folder.checkpoint(1)});
  CHECK(read_checkpoint(folder.best()).step == 1);
  CHECK(read_checkpoint(folder.last()).step == 4);
  folder.save(of_step(5, 5), 2);
  CHECK(folder.checkpoints() == std::vector{folder.checkpoint(5), folder.checkpoint(4)});
}

TEST_CASE("steps are ordered by their number, and later ones than the saved do not count") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  folder.create();
  for (const std::int64_t step : {99'999'999, 100'000'000}) folder.save(of_step(step, 0), 1);
  CHECK(folder.checkpoints() == std::vector{folder.checkpoint(100'000'000)});
  CHECK(folder.newest_step() == 100'000'000);
  folder.save(of_step(7, 0), 1);
  CHECK(folder.checkpoints() == std::vector{folder.checkpoint(7)});
}

TEST_CASE("checkpoints that cannot be listed are an error, not an empty folder") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  dir.write("run/checkpoints", "a file");
  const std::string expected =
      (folder.path() / "checkpoints").string() + ": the folder cannot be read: Not a directory";
  CHECK(error_of<FileError>([&] { folder.checkpoints(); }) == expected);
  CHECK(error_of<FileError>([&] { require_run(folder); }) == expected);
  CHECK(error_of<FileError>([&] { find_checkpoint(folder.path()); }) == expected);
  dir.write("run/best.h5", "");
  CHECK(error_of<FileError>([&] { find_checkpoint(folder.path()); }) == expected);
}

TEST_CASE("a best step that cannot be is none") {
  for (const double step : {-1.0, 6.0, 1e300, -HUGE_VAL, std::nan("")}) {
    Checkpoint checkpoint = of_step(5, 0);
    checkpoint.progress["best_step"] = step;
    CHECK(!best_step_of(checkpoint));
  }
  CHECK(best_step_of(of_step(5, 5)) == 5);
}

TEST_CASE("every checkpoint is flushed before it gets its name, and its name afterwards") {
  const TempDir dir;
  const RunFolder folder(std::filesystem::canonical(dir.path()) / "run");
  folder.create();
  SystemCalls calls;
  folder.save(of_step(1, 1), 3);
  // "fsync F", "rename F NAME", "fsync FOLDER" for the file of the step, and the last two for each
  // of its other names.
  std::vector<std::string> order;
  for (const std::string& call : calls.all()) {
    const std::string what = call.substr(0, call.find(' ')), operand = call.substr(what.size() + 1);
    if (what == "unlink") continue;
    if (what == "fsync" && std::filesystem::is_directory(operand))
      order.emplace_back("fsync folder");
    else
      order.push_back(what == "fsync" ? "fsync file" : what);
  }
  CHECK(order == std::vector<std::string>{"write", "fsync file", "rename", "fsync folder",  //
                                          "link", "rename", "fsync folder",                 //
                                          "link", "rename", "fsync folder"});
}

TEST_CASE("folders of a run that are links are refused, and nothing is written or removed there") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  for (const char* name : {"checkpoints", "tensorboard"}) {
    const auto elsewhere = dir.path() / "elsewhere", link = folder.path() / name;
    std::filesystem::create_directories(elsewhere);
    std::filesystem::create_directories(folder.path());
    std::ofstream(elsewhere / "step-00000001.h5") << "mine";
    std::filesystem::create_directory_symlink(elsewhere, link);
    const std::string refused = link.string() + ": is a link";
    CHECK(error_of<UserError>([&] { folder.create(); }).starts_with(refused));
    CHECK(error_of<UserError>([&] { folder.clear(); }).starts_with(refused));
    CHECK(std::filesystem::exists(elsewhere / "step-00000001.h5"));
    std::filesystem::remove(link);
  }
}

TEST_CASE("a run whose folder was made anew by another writes nothing there") {
  const TempDir dir;
  RunFolder folder(dir.path() / "run"), other(dir.path() / "run");
  folder.lock();
  folder.create();
  folder.save(of_step(1, 0), 3);
  std::filesystem::remove_all(folder.path());
  other.lock();
  other.create();
  other.save(of_step(2, 2), 3);
  CHECK_THROWS_AS(folder.save(of_step(3, 3), 3), FileError);
  CHECK(folder.checkpoints() == std::vector{folder.checkpoint(2)});
  CHECK(read_checkpoint(folder.best()).step == 2);
}

TEST_CASE("the checkpoint of a stop goes with the next one, unless it is the best") {
  const TempDir dir;
  const RunFolder folder(dir.path() / "run");
  folder.create();
  for (const std::int64_t step : {10, 20, 30, 31}) folder.save(of_step(step, 0), 3);
  folder.save(of_step(40, 0), 3, 31);
  CHECK(folder.checkpoints() ==
        std::vector{folder.checkpoint(40), folder.checkpoint(30), folder.checkpoint(20)});
  folder.save(of_step(45, 45), 3);
  folder.save(of_step(50, 45), 3, 45);
  CHECK(folder.checkpoints() == std::vector{folder.checkpoint(50), folder.checkpoint(45),
                                            folder.checkpoint(40), folder.checkpoint(30)});
}

TEST_CASE(
    "an ensemble is a run and those in its folder, and clearing it leaves runs that it links to") {
  const TempDir dir;
  const RunFolder run(dir.path() / "run"), member(run.ensemble() / "b"),
      other(dir.path() / "other");
  for (const RunFolder& folder : {run, member, other}) {
    folder.create();
    folder.save(of_step(1, 0), 3);
  }
  std::filesystem::create_directory_symlink(other.path(), run.ensemble() / "a");
  CHECK(ensemble_of(run.path()) == std::vector{run.path(), run.ensemble() / "a", member.path()});
  CHECK(ensemble_of(run.last()) == std::vector{run.last()});
  run.clear();
  CHECK(ensemble_of(run.path()).size() == 3);
  run.clear_ensemble();
  CHECK(ensemble_of(run.path()) == std::vector{run.path()});
  CHECK(!member.holds_checkpoints());
  CHECK(other.holds_checkpoints());
}
