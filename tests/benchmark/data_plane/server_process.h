#ifndef TESTS_BENCHMARK_DATA_PLANE_SERVER_PROCESS_H_
#define TESTS_BENCHMARK_DATA_PLANE_SERVER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// This program once more, as a server: the other end of a transport. It ends
// when its standard input does, so also with a parent that is killed.
class ServerProcess {
 public:
  // Starts it with these flags and waits until it has said where it listens.
  // Errors: Internal.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(
      const std::vector<std::string>& flags);
  // Ends it, and waits.
  ~ServerProcess();

  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // "127.0.0.1:port"
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

 private:
  ServerProcess() = default;

  // Spawns, with `child_in` and `child_out` as its standard input and output.
  absl::Status Spawn(const std::vector<std::string>& flags, int child_in,
                     int child_out);
  // Reads the address from `out`.
  absl::Status ReadAddress(int out);

  pid_t pid_ = -1;
  int input_ = -1;
  std::string address_;
};

// In the server: says where it listens and waits for the end.
void ServeUntilInputEnds(absl::string_view address);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_SERVER_PROCESS_H_
