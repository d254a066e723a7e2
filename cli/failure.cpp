#include "cli/failure.h"

#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/error.h"

namespace qkv {
namespace {

constexpr int failed = 1, wrong_use = 2;
constexpr const char* out_of_memory =
    "not enough memory; lower train.batch, model.width or model.max_length, or give the process "
    "more";

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const UserError& error) {
    return {error.what(), wrong_use};
  } catch (const Error& error) {
    return {error.what(), failed};
  } catch (const std::filesystem::filesystem_error& error) {
    return {error.path1().string() + ": " + error.code().message(), failed};
  } catch (const std::system_error& error) {
    return {"the system refuses: " + error.code().message(), failed};
  } catch (const std::bad_alloc&) {
    return {out_of_memory, failed};
  } catch (const std::length_error&) {  // more elements than a container can have
    return {out_of_memory, failed};
  } catch (const std::exception& error) {
    return {std::string("internal error: ") + error.what(), failed};
  }
}

}  // namespace qkv
