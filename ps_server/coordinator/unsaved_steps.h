#ifndef PS_SERVER_COORDINATOR_UNSAVED_STEPS_H_
#define PS_SERVER_COORDINATOR_UNSAVED_STEPS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// How much of the job is on no disk. While no chief is there to save it, the
// job may get as far as the next save would have been due, and no further: so
// whoever dies, no more than that is lost. Not thread-safe; no clock.
class UnsavedSteps {
 public:
  // Starts an epoch, whose model is saved or, if it is new, about to be.
  // Errors: InvalidArgument for an interval that is negative or not finite.
  absl::Status Start(const CommitEpochRequest& commit, absl::Time now);
  // No epoch.
  void Clear() { *this = UnsavedSteps(); }

  // A checkpoint of `global_step` is whole. A late repeat has no effect.
  void OnSaved(int64_t global_step, absl::Time now);

  // The chief says what takes too long, "the save of step 400, which ...",
  // again and again until it says "".
  void OnOverdue(std::string what, absl::Time now);
  // Should it not be heard of, nobody waits for what may be over long ago.
  bool IsOverdue(absl::Time now) const { return now < overdue_until_; }
  const std::string& overdue() const { return overdue_; }
  // Does the chief save at all?
  bool saves() const { return saves_; }
  // The newest whole checkpoint since the epoch began, and when it was there;
  // nothing: there is none yet.
  int64_t saved_step() const { return saved_step_; }
  std::optional<absl::Time> saved_at() const {
    return has_saved_ ? std::optional<absl::Time>(saved_at_) : std::nullopt;
  }
  // The chief has finished, and has nothing more to save.
  void OnLastSave() { awaits_last_save_ = false; }
  // Is the save at the end of the job still to be made?
  bool awaits_last_save() const { return awaits_last_save_; }
  // Would a save be due after `steps` global steps, those granted included?
  bool IsSaveDue(int64_t steps, absl::Time now) const;
  // "12 steps since the save at step 400 (checkpoint.every_steps: 10)".
  std::string Describe(int64_t steps) const;

 private:
  bool saves_ = false;
  bool awaits_last_save_ = false;
  int64_t every_steps_ = 0;                      // 0: not by steps
  absl::Duration every_ = absl::ZeroDuration();  // zero: not by time
  int64_t saved_step_ = 0;
  bool has_saved_ = false;
  absl::Time saved_at_ = absl::InfiniteFuture();
  std::string overdue_;
  absl::Time overdue_until_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_UNSAVED_STEPS_H_
