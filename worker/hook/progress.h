#ifndef WORKER_HOOK_PROGRESS_H_
#define WORKER_HOOK_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "common/base/work_progress.h"
#include "worker/hook/hook.h"
#include "worker/hook/rate_meter.h"

namespace muster {

// The hook that shows how the training goes. On a terminal, one line that is
// written over a few times a second; elsewhere, and at the end, a plain line:
//
//   step=1200 loss=0.213 steps_per_s=7.1 examples_per_s=910 staleness=1.0
//   left=2m10s                                            (all in one line)
//
// step is the global step; loss (if steps have one), rates and staleness are
// this worker's means since the line before. dropped_steps=K, once there are
// any, are the steps of this process that were dropped in synchronous
// replication; bad_records=K the rows that it has passed over
// (input.on_bad_record). input_wait=34% says that so much of the time went by
// while steps waited for their rows, if it is much.
class Progress : public Hook {
 public:
  struct Options {
    // Between plain lines.
    absl::Duration every = absl::Seconds(10);
    // Global step at which the training stops; 0: not known.
    int64_t target_step = 0;
    // The bad records that were passed over; null: none ever are.
    std::function<int64_t()> bad_records;
  };

  Progress(const Options& options, ProgressOutput output);

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::Status AfterStep(const StepRecord& step) override;
  absl::Status AtEnd(const EndRecord& end) override;

 private:
  std::string Line() const;

  const Options options_;
  const ProgressOutput output_;
  RateMeter meter_;
  int64_t global_step_ = 0;
  bool has_loss_ = true;
  int64_t dropped_ = 0;
  bool any_step_ = false;
  // On a terminal: what it shows.
  std::string live_line_;
};

}  // namespace muster

#endif  // WORKER_HOOK_PROGRESS_H_
