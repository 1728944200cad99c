#include "worker/hook/dropped_steps.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/hook/hook_registry.h"

namespace muster {
namespace {

constexpr absl::Duration kSayEvery = absl::Seconds(10);

absl::StatusOr<std::unique_ptr<Hook>> Make(const HookParts& parts) {
  if (!parts.training.replication().has_sync()) return nullptr;
  return std::make_unique<DroppedSteps>(parts.reporter);
}

[[maybe_unused]] const bool kRegistered =
    HookRegistry::Register("dropped_steps", &Make);

}  // namespace

DroppedSteps::DroppedSteps(Reporter reporter)
    : reporter_(std::move(reporter)) {}

absl::Status DroppedSteps::AfterStep(const StepRecord& step) {
  if (step.dropped) {
    ++dropped_;
    newest_ = step.step;
  }
  if (dropped_ == 0 || step.now < say_at_) return absl::OkStatus();
  say_at_ = step.now + kSayEvery;
  Say();
  return absl::OkStatus();
}

absl::Status DroppedSteps::AtEnd(const EndRecord& end) {
  static_cast<void>(end);
  if (dropped_ > 0) Say();
  return absl::OkStatus();
}

void DroppedSteps::Say() {
  reporter_.Info(absl::StrCat(
      dropped_, dropped_ == 1 ? " step" : " steps",
      " of this worker dropped, the last its step ", newest_,
      ": other workers had made the update when the gradient came"));
  dropped_ = 0;
}

}  // namespace muster
