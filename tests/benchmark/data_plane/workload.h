#ifndef TESTS_BENCHMARK_DATA_PLANE_WORKLOAD_H_
#define TESTS_BENCHMARK_DATA_PLANE_WORKLOAD_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// The thing that is measured; main.cc has the flags of the same names.
struct WorkloadOptions {
  // The size of the float32 values, one way.
  int64_t bytes = 13107200;
  int tensors = 8;
  int workers = 1;
  int shards = 1;
  // The size of a message, and how many are on the way to each shard; 0: the
  // client's own choice.
  int64_t part_bytes = 0;
  int window_parts = 0;
  std::string link = "grpc";
  // For the gradients of a push, and the values that it brings; "": float32.
  std::string codec;
  // "" for none, where that is possible.
  std::string optimizer = "adam";
  bool keep_freed_memory = true;
  // Mutual TLS between worker and shards.
  bool tls = false;
  // The folder with a server's certificates.
  std::string tls_folder;
  // Where the shards listen, and their network namespace; "": this one.
  std::string server_host = "127.0.0.1";
  std::string server_netns;
};

// The work that a figure repeats. The memory of all steps is allocated and
// touched at construction.
class Workload {
 public:
  virtual ~Workload() = default;

  // One step of `worker`; the workers have a thread each.
  virtual absl::Status Step(int worker) = 0;

  // After the last step: has it done what it claims? Errors: Internal.
  virtual absl::Status Check() = 0;

  // The bytes that a step moves (or, in memory, reads and writes), as float32.
  virtual int64_t bytes_per_step() const = 0;

  // The part of the last step that only waited for the next one to be as it
  // should.
  virtual absl::Duration idle() const { return absl::ZeroDuration(); }

  // Processes besides this one whose CPU time is part of a step.
  virtual std::vector<pid_t> processes() const { return {}; }
};

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_WORKLOAD_H_
