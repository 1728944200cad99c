#ifndef PS_SERVER_HTTP_LOOKER_H_
#define PS_SERVER_HTTP_LOOKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/peer_channel.h"
#include "ps_server/http/ps_look.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/shard_server.h"

namespace muster {

// Looks at a ps task when somebody asks: one look at a time, for all that have
// asked by then, so that a hundred who ask at once cost as much as one. A look
// is a turn of the shard and one of the coordinator, and takes no lock of
// theirs beyond it.
//
// It has a thread, since who brings a request to a shard carries out others'
// with it (Strand), as long as they come. Thread-safe.
class Looker {
 public:
  using Done = std::function<void(std::shared_ptr<const PsLook>)>;
  enum class Reach {
    kOwnTask,
    // Also the shards of the other ps tasks, as far as they answer in time.
    kAllTasks,
  };
  // Other ps tasks have so long.
  static constexpr absl::Duration kPatience = absl::Milliseconds(500);

  struct Options {
    int32_t task_index = 0;
    int32_t num_ps = 1;
    // Outlive the looker; closed before it ends.
    ShardServer* shard = nullptr;
    // Null but on ps task 0.
    CoordinationServer* coordination = nullptr;
    // By task; they are asked.
    std::map<int32_t, PeerChannel::OpenFunction> others;
    // Outlives every call.
    const Clock* clock = nullptr;
    // As Prometheus has it.
    std::function<absl::Time()> wall_time = absl::Now;
  };

  explicit Looker(Options options);
  // Takes as long as calls that are under way.
  ~Looker();

  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

  // Gives a look that begins from now on to `done`, on any thread; nothing once
  // the shard is closed.
  void Ask(Reach reach, Done done);

 private:
  // A look that is being taken.
  struct Look;

  void Run();
  // Begins one if somebody asks and none is being taken.
  void MaybeBegin();
  void AskOthers(const std::shared_ptr<Look>& look);
  // A part of it is there.
  void Arrive(const std::shared_ptr<Look>& look);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return quit_ || (!asked_.empty() && !is_looking_);
  }
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return calls_ == 0; }

  // Constant after construction.
  const Options options_;
  const absl::Time started_;
  // Own synchronisation.
  std::map<int32_t, std::unique_ptr<PeerChannel>> others_;

  absl::Mutex mu_;
  std::vector<Done> asked_ ABSL_GUARDED_BY(mu_);
  Reach reach_ ABSL_GUARDED_BY(mu_) = Reach::kOwnTask;
  bool is_looking_ ABSL_GUARDED_BY(mu_) = false;
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  // To other ps tasks.
  int calls_ ABSL_GUARDED_BY(mu_) = 0;

  // Last: uses all of the above.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // PS_SERVER_HTTP_LOOKER_H_
