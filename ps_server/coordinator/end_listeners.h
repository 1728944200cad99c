#ifndef PS_SERVER_COORDINATOR_END_LISTENERS_H_
#define PS_SERVER_COORDINATOR_END_LISTENERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The tasks that are to learn the job's end, and which of them know it: ps task
// 0 stays until all do. They are the ps tasks that watch the job, of which one
// knows the end when it watches from a version of the state on that has it, and
// the workers that were lost before, which may only have stood still. Nobody is
// waited for longer than `patience` after the end, nor a ps task that was not
// heard of for so long.
// Not thread-safe; no clock, no waiting.
class EndListeners {
 public:
  explicit EndListeners(absl::Duration patience) : patience_(patience) {}

  // The job is done; states from `version` on say so.
  void OnEnd(int64_t version, absl::Time now);
  // The job goes on: its end is to come.
  void Reopen() { end_version_ = 0; }
  // A task is there, and will ask.
  void Expect(const TaskKey& task, uint64_t incarnation, absl::Time now);
  // A Watch of a ps task from `version` on; `newest` is that of now.
  void OnWatch(const Sender& ps, int64_t version, int64_t newest,
               absl::Time now);
  // This start of a ps task does not listen any more.
  void Leave(const Sender& ps);
  absl::Duration patience() const { return patience_; }
  // A start of a worker that has no index has been told.
  void OnTold(uint64_t incarnation);
  // A worker has been told.
  void OnTold(const TaskKey& worker) { listeners_.erase(worker); }

  // Lets time pass.
  void Tick(absl::Time now);
  // After OnEnd: nobody is left who has to be told.
  bool all_know() const { return end_version_ > 0 && listeners_.empty(); }
  // Those who are still to be told: "/job:ps/task:1 to hear of the end"; "" for
  // none.
  std::string Describe() const;
  // When Tick next changes something; InfiniteFuture if never.
  absl::Time NextDeadline() const;

 private:
  struct Listener {
    uint64_t incarnation;
    absl::Time last_heard;
  };

  // More than any cluster has tasks.
  static constexpr size_t kMaxListeners = 4096;

  const absl::Duration patience_;
  int64_t end_version_ = 0;  // 0: before the end
  absl::Time end_ = absl::InfiniteFuture();
  // Those who do not know the end.
  std::map<TaskKey, Listener> listeners_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_END_LISTENERS_H_
