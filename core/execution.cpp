#include "core/execution.h"

#include <utility>

namespace qkv {
namespace {

thread_local constinit Execution current_execution;

}  // namespace

const Execution& Execution::current() noexcept {
  return current_execution;
}

ExecutionScope::ExecutionScope(const Execution& execution) noexcept
    : previous_(std::exchange(current_execution, execution)) {}
ExecutionScope::~ExecutionScope() {
  current_execution = previous_;
}

}  // namespace qkv
