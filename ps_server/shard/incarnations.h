#ifndef PS_SERVER_SHARD_INCARNATIONS_H_
#define PS_SERVER_SHARD_INCARNATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/caller/listed_tasks.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The starts of tasks that may speak to one namespace of this ps process. An
// incarnation is current from its Hello until another one of the same task
// takes over; then it is retired for good. Bounded, whatever says Hello. Not
// thread-safe.
class Incarnations {
 public:
  // Tasks beside those of the cluster, which need not list the workers: as many
  // as a cluster can have.
  static constexpr size_t kMaxTasks = 4096;
  // "worker", "chief", "evaluator", "ps".
  static constexpr size_t kMaxJobName = 32;

  // There is always room for the listed tasks.
  explicit Incarnations(ListedTasks listed = ListedTasks())
      : listed_(std::move(listed)) {}

  // Makes `sender` the current incarnation of its task and returns 0. If
  // another one is current, nothing changes, and the number that `takeover` has
  // to be for that is returned (HelloReply.takeover). Repeatable.
  // Errors: InvalidArgument for incarnation 0 or a longer job name;
  // FailedPrecondition ("fenced:") if it was retired; ResourceExhausted beyond
  // kMaxTasks that are not listed.
  absl::StatusOr<uint64_t> Admit(const Sender& sender, uint64_t takeover);

  // OK if `sender` is the current incarnation of its task, else
  // FailedPrecondition ("fenced: ...").
  absl::Status CheckCurrent(const Sender& sender) const;

  // The current incarnation of the sender's task; 0: none has come.
  uint64_t Current(const Sender& sender) const;
  // Those of all tasks.
  std::vector<uint64_t> AllCurrent() const;

 private:
  static constexpr int kRememberedIncarnations = 8;

  struct Task {
    uint64_t current = 0;
    // A ring.
    std::array<uint64_t, kRememberedIncarnations> retired{};
    // How many there ever were, those that the ring has forgotten included.
    int64_t num_retired = 0;

    bool IsRetired(uint64_t incarnation) const;
    void Replace(uint64_t incarnation);
  };

  const ListedTasks listed_;
  std::map<TaskKey, Task> tasks_;
  size_t unlisted_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_INCARNATIONS_H_
