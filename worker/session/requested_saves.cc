#include "worker/session/requested_saves.h"

#include <algorithm>
#include <utility>

#include "worker/session/peer_table.h"

namespace muster {
namespace {

constexpr int kReportAttempts = 5;

}  // namespace

// The ps that asked has a few seconds.
void RequestedSaves::On(const SaveReportLostEvent& event) {
  if (event.attempt >= kReportAttempts) return;
  report_ = SendSaveReport{event.save_request, event.error, event.attempt + 1};
  report_at_ = core_.now() + RetryPause(event.attempt - 1);
}

bool RequestedSaves::WantsSave() const {
  const JobState& state = core_.state();
  return core_.options().chief && stepping_.steps().epoch() != 0 &&
         state.save_requests() > std::max(seen_, state.saves_answered());
}

void RequestedSaves::Advance() {
  AskToSave();
  if (!report_.has_value() || core_.now() < report_at_) return;
  core_.Do(*std::exchange(report_, std::nullopt));
  report_at_ = absl::InfiniteFuture();
}

// When the own step is counted, and before another one is taken.
void RequestedSaves::AskToSave() {
  const StepMachine& steps = stepping_.steps();
  if (!WantsSave() || core_.busy() || steps.has_report()) return;
  if (after_step_ < 0) after_step_ = steps.begun() + 1;
  if (steps.granted() && steps.begun() < after_step_) return;
  after_step_ = -1;
  seen_ = core_.state().save_requests();
  core_.Do(SaveNow{seen_});
}

}  // namespace muster
