// The C interface of MPI alone.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/control_group.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/platform.h"
#include "train/ranks/communicator.h"

namespace qkv {
namespace {

void require_success(int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(fmt::format("MPI: {}; if another rank has ended, continue with `qkv resume`",
                          std::string(text.data(), static_cast<std::size_t>(length))));
}

/// Blocks as MPI describes them.
struct MpiBlocks {
  explicit MpiBlocks(std::span<const Index> sizes) {
    int begin = 0;
    for (const Index size : sizes) {
      counts.push_back(static_cast<int>(size));
      begins.push_back(begin);
      begin += counts.back();
    }
  }

  std::vector<int> counts, begins;
};

/// The ranks of this machine that may use some of the cores of this one, which is one of them.
int ranks_that_share_cores() {
  const platform::Cores own = platform::cores();
  MPI_Comm machine = MPI_COMM_NULL;
  require_success(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine));
  int size = 0;
  require_success(MPI_Comm_size(machine, &size));
  std::vector<platform::Cores> all(static_cast<std::size_t>(size));
  require_success(
      MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, machine));
  require_success(MPI_Comm_free(&machine));
  return static_cast<int>(std::ranges::count_if(
      all, [&](const platform::Cores& other) { return (other & own).any(); }));
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    int provided = 0;
    require_success(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
    require<Error>(provided >= MPI_THREAD_SERIALIZED,
                   "MPI: this library serves one thread alone; use one built with threads");
    require_success(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    require_success(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    require_success(MPI_Comm_size(MPI_COMM_WORLD, &size_));
    set_default_threads(usable_cores() / ranks_that_share_cores());
  }
  ~MpiCommunicator() override { MPI_Finalize(); }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  Index rank() const override { return rank_; }
  Index size() const override { return size_; }

  void all_gather(std::span<std::byte> bytes, std::span<const Index> sizes) const override {
    const MpiBlocks blocks(sizes);
    MPI_Request request = MPI_REQUEST_NULL;
    require_success(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes.data(),
                                    blocks.counts.data(), blocks.begins.data(), MPI_BYTE,
                                    MPI_COMM_WORLD, &request));
    wait(request);
  }

  void all_to_all(std::span<const std::byte> sent, std::span<const Index> sent_sizes,
                  std::span<std::byte> received,
                  std::span<const Index> received_sizes) const override {
    const MpiBlocks out(sent_sizes), in(received_sizes);
    MPI_Request request = MPI_REQUEST_NULL;
    require_success(MPI_Ialltoallv(sent.data(), out.counts.data(), out.begins.data(), MPI_BYTE,
                                   received.data(), in.counts.data(), in.begins.data(), MPI_BYTE,
                                   MPI_COMM_WORLD, &request));
    wait(request);
  }

  void kill_others(int exit_code) const override { MPI_Abort(MPI_COMM_WORLD, exit_code); }

 private:
  /// MPI's own waiting keeps a core busy, which other ranks or threads may need: while rank 0
  /// evaluates, the others sleep.
  static void wait(MPI_Request& request) {
    constexpr int polls_before_yield = 100, polls_before_sleep = 10'000;
    int done = 0;
    for (int polls = 0; !done; ++polls) {
      require_success(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (polls > polls_before_sleep)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      else if (polls > polls_before_yield)
        std::this_thread::yield();
    }
  }

  int rank_ = 0, size_ = 1;
};

/// Whether a launcher of MPI programs started this process. Without one, MPI_Init would start a
/// server of its own.
bool launched() {
  constexpr std::array variables = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
  return std::ranges::any_of(variables, [](const char* name) { return std::getenv(name); });
}

}  // namespace

std::unique_ptr<const Communicator> connect() {
  if (launched()) return std::make_unique<const MpiCommunicator>();
  return std::make_unique<const Communicator>();
}

}  // namespace qkv
