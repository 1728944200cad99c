#include "tests/benchmark/data_plane/server_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";

// A pipe that no other child inherits, closed at the end of the scope unless
// an end was released.
struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  bool ok() const { return ends[0] >= 0; }

  int ends[2];
};

}  // namespace

absl::Status ServerProcess::Spawn(const std::vector<std::string>& flags,
                                  int child_in, int child_out) {
  std::vector<char*> argv = {const_cast<char*>(kThisProgram)};
  for (const std::string& flag : flags) {
    argv.push_back(const_cast<char*>(flag.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_out, STDOUT_FILENO);
  const int error =
      posix_spawn(&pid_, kThisProgram, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return absl::OkStatus();
  pid_ = -1;
  return absl::ErrnoToStatus(error, "starting a server");
}

absl::Status ServerProcess::ReadAddress(int out) {
  for (char byte; read(out, &byte, 1) == 1;) {
    if (byte == '\n') return absl::OkStatus();
    address_.push_back(byte);
  }
  return absl::InternalError("it ended before it listened");
}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    const std::vector<std::string>& flags) {
  Pipe in;
  Pipe out;
  if (!in.ok() || !out.ok()) return absl::ErrnoToStatus(errno, "pipe");
  auto server = std::unique_ptr<ServerProcess>(new ServerProcess);
  RETURN_IF_ERROR(server->Spawn(flags, in.ends[0], out.ends[1]));
  std::swap(server->input_, in.ends[1]);
  // So that the end of the child is the end of the pipe.
  close(out.ends[1]);
  out.ends[1] = -1;
  const absl::Status status = server->ReadAddress(out.ends[0]);
  if (status.ok()) return server;
  return absl::Status(
      status.code(), absl::StrCat("the server with ", absl::StrJoin(flags, " "),
                                  ": ", status.message()));
}

ServerProcess::~ServerProcess() {
  if (input_ >= 0) close(input_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void ServeUntilInputEnds(absl::string_view address) {
  std::printf("%s\n", std::string(address).c_str());
  std::fflush(stdout);
  for (char byte; read(STDIN_FILENO, &byte, 1) == 1;) {
  }
}

}  // namespace muster
