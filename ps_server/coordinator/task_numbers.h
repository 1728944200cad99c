#ifndef PS_SERVER_COORDINATOR_TASK_NUMBERS_H_
#define PS_SERVER_COORDINATOR_TASK_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/members.h"

namespace muster {

// The indices of workers that come without one, where the cluster lists none:
// from 1 on, since worker 0 is the chief, who has the disk. Not thread-safe; no
// clock.
class TaskNumbers {
 public:
  // So long an index is kept for who was given it and has not registered: it
  // opens its data in between.
  static constexpr absl::Duration kReserved = absl::Minutes(10);
  // So long after the first commit, if that restored a model, workers that the
  // former start of ps task 0 knew come back.
  static constexpr absl::Duration kReturn = absl::Seconds(5);

  // The chief has committed an epoch, of a model that is restored or new.
  void OnCommit(bool is_restored, absl::Time now);

  // Indices up to `highest` have been given, as a task says that comes. Those
  // that were not given here are an earlier start's of ps task 0.
  void HearOf(int32_t highest);
  // The highest index that was ever given, as far as is known here; 0: none.
  int32_t highest() const { return highest_; }

  // The index that this start has, or was given; else the first that no task
  // has or had, above those of earlier starts of ps task 0; without such a one
  // that of a task that has finished, then one that an earlier start may have
  // given, at last that of one that is lost. Errors: ResourceExhausted;
  // Unavailable until it is known who has an index.
  absl::StatusOr<int32_t> Assign(uint64_t incarnation, const Members& members,
                                 absl::Time now);

  // Starts that are on the way, by task: they were told to ask again, and have
  // no index (the key's is below zero), or have not registered with the one
  // that they were given.
  std::map<TaskKey, uint64_t> Coming(const Members& members, absl::Time now);

 private:
  // A start that waits asks again within Backoff's largest pause; one that has
  // not for so long is gone.
  static constexpr absl::Duration kAskAgain = absl::Seconds(10);
  static constexpr size_t kMaxWaiting = 4096;

  struct Kept {
    uint64_t incarnation;
    absl::Time until;
  };

  absl::Status CheckKnown(absl::Time now) const;
  // The index that is kept for this start, from now on; 0: none.
  int32_t Keep(uint64_t incarnation, absl::Time now);
  // Forgets those who have registered, whose index another start has, and who
  // have had time to.
  void Release(const Members& members, absl::Time now);

  // When all who have an index are known; InfiniteFuture before a commit.
  absl::Time known_at_ = absl::InfiniteFuture();
  int32_t highest_ = 0;
  // Earlier starts of ps task 0 have given those up to here.
  int32_t highest_of_earlier_ = 0;
  // By index.
  std::map<int32_t, Kept> kept_;
  // When who waits for an index asked last, by incarnation.
  std::map<uint64_t, absl::Time> waiting_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_TASK_NUMBERS_H_
