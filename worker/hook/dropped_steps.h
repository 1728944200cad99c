#ifndef WORKER_HOOK_DROPPED_STEPS_H_
#define WORKER_HOOK_DROPPED_STEPS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/reporter.h"
#include "worker/hook/hook.h"

namespace muster {

// The hook of synchronous replication that says when steps of this worker were
// dropped: their gradients came after the update of their round. At most one
// line every 10 s, with their count since the line before; what is left, at the
// end.
class DroppedSteps : public Hook {
 public:
  explicit DroppedSteps(Reporter reporter);

  absl::Status AfterStep(const StepRecord& step) override;
  absl::Status AtEnd(const EndRecord& end) override;

 private:
  void Say();

  const Reporter reporter_;
  // Since the last line, and the newest of them.
  int64_t dropped_ = 0;
  int64_t newest_ = 0;
  absl::Time say_at_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // WORKER_HOOK_DROPPED_STEPS_H_
