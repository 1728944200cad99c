#ifndef PS_SERVER_COORDINATOR_SAVE_REQUESTS_H_
#define PS_SERVER_COORDINATOR_SAVE_REQUESTS_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// The saves that ps tasks ask for before they stop. From the first that asks
// until all that asked have left, the coordinator grants no step; a save is
// raised when the steps that were granted before are counted, but the chief's,
// which the chief counts before it saves. So the
// checkpoint holds every step that was ever acknowledged. Not thread-safe; no
// clock.
//
//   Ask --granted steps are counted, or kDrainTime--> raised --Answer-->
//   answered --all Leave, or kLongestPause--> steps are granted again
class SaveRequests {
 public:
  // The longest that a step may take. One that takes longer may be lost, and
  // then the answer says so.
  static constexpr absl::Duration kDrainTime = absl::Seconds(3);
  // A ps ends within 10 s; one that has not is dead or stopped.
  static constexpr absl::Duration kLongestPause = absl::Seconds(12);

  // A ps asks; returns the number of the save that is its answer. All that ask
  // in one pause share one save: no step is taken in between. Repeatable.
  int64_t Ask(int32_t ps_task, absl::Time now);
  // An operator asks, for whom no step waits: raises a save, unless one is
  // raised that was not answered; returns its number, and whether it is new.
  std::pair<int64_t, bool> Raise();
  // It acknowledges nothing any more. Repeatable.
  void Leave(int32_t ps_task) { askers_.erase(ps_task); }
  // The chief's answer to a save that was raised; `error` is empty if its
  // checkpoint is whole. Returns false for a late repeat.
  bool Answer(int64_t number, absl::string_view error);
  // The model is loaded anew: who asked has nothing to save.
  void Clear();

  // Raises the save that is due, forgets who should have left. Returns whether
  // that changed anything.
  bool Advance(int64_t others_grants, absl::Time now);
  // When Advance wants to be called at the latest.
  absl::Time NextDeadline() const;

  bool pauses_grants() const { return !askers_.empty(); }
  // The number of the next save that would be raised.
  int64_t next() const { return raised_ + 1; }
  int64_t raised() const { return raised_; }
  int64_t answered() const { return answered_; }
  const std::string& error() const { return error_; }

 private:
  bool HasDue() const { return pauses_grants() && raised_ < wanted_; }

  // Indexes of the ps tasks that have asked and not left.
  std::set<int32_t> askers_;
  absl::Time drain_until_ = absl::InfinitePast();
  absl::Time pause_until_ = absl::InfinitePast();
  // The save that the present or last pause is for.
  int64_t wanted_ = 0;
  int64_t raised_ = 0;
  // Whether a step was under way when the newest save was raised.
  bool step_was_under_way_ = false;
  int64_t answered_ = 0;
  // The error of save `answered_`.
  std::string error_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_SAVE_REQUESTS_H_
