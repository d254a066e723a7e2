#include "cli/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "core/error.h"
#include "core/platform.h"

extern "C" char** environ;  // POSIX leaves the declaration to the program

namespace qkv {
namespace {

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments,
                           const std::filesystem::path& output) {
  const std::string program = platform::program().string();
  std::vector<char*> words = {const_cast<char*>("qkv")};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  const int error =
      posix_spawn(&process_, program.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  require<FileError>(error == 0, "cannot start {}: {}", program,
                     std::generic_category().message(error));
}

ChildProcess::~ChildProcess() {
  kill();
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  if (!exit_code_ && waitpid(process_, &status, WNOHANG) == process_) exit_code_ = code_of(status);
  return exit_code_;
}

int ChildProcess::kill() {
  if (exit_code()) return *exit_code_;
  ::kill(process_, SIGKILL);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  return *(exit_code_ = code_of(status));
}

}  // namespace qkv
