#ifndef TESTS_BENCHMARK_DATA_PLANE_SHARDS_H_
#define TESTS_BENCHMARK_DATA_PLANE_SHARDS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/parameter_link.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

// The parameter shards that a figure trains against, and ways to them.
// Thread-compatible.
class Shards {
 public:
  virtual ~Shards() = default;

  // A link to one shard; does not outlive this.
  virtual std::unique_ptr<ParameterLink> Connect(int shard) = 0;

  // The processes that hold them; empty if this one does.
  virtual std::vector<pid_t> processes() const { return {}; }
};

// Starts options.shards shards: in this process for the link "in_process", for
// the others whole ps tasks in a process each. Errors: InvalidArgument for an
// unknown link, with all known ones.
absl::StatusOr<std::unique_ptr<Shards>> StartShards(
    const WorkloadOptions& options);

// A ps task as a process of its own; returns when the standard input ends.
absl::Status ServeShard(const WorkloadOptions& options);

// A worker's first words to each of these shards.
HelloRequest HelloTo(const Sender& sender);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_SHARDS_H_
