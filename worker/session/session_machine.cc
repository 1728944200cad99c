#include "worker/session/session_machine.h"

#include <algorithm>
#include <variant>

namespace muster {

std::vector<SessionAction> SessionMachine::Handle(const SessionEvent& event,
                                                  absl::Time now) {
  core_.BeginEvent(now);
  if (core_.exited()) return {};
  std::visit([this](const auto& e) { On(e); }, event);
  LeaveLostEpoch();
  if (!core_.exited()) Advance();
  LeaveLostEpoch();
  if (core_.exited()) core_.SayBeforeExit(stepping_.DescribeUncounted());
  return core_.ReleaseActions();
}

absl::Time SessionMachine::next_wakeup() const {
  return std::min({core_.next_wakeup(), connecting_.next_wakeup(),
                   stepping_.next_wakeup(), saves_.next_wakeup(),
                   ending_.next_wakeup()});
}

void SessionMachine::On(const RegisterEvent& event) {
  if (!connecting_.On(event)) return;
  saves_.OnRegistered();
}

void SessionMachine::LeaveLostEpoch() {
  if (!core_.PopReconnect()) return;
  stepping_.OnReconnect();
  ending_.OnReconnect();
}

void SessionMachine::Advance() {
  stepping_.AwaitAnswer();
  ending_.HearOperator();
  if (core_.exited() || ending_.AdvanceAnyhow()) return;
  if (!connecting_.Advance()) return;
  saves_.Advance();
  if (core_.busy() || core_.Pause()) return;
  if (ending_.AdvanceReported()) return;
  if (!core_.HasUsableEpoch()) return restoring_.Advance();
  if (restoring_.AdvanceStop() || !stepping_.UseEpoch()) return;
  if (!ending_.AdvanceStopping()) stepping_.Advance();
}

}  // namespace muster
