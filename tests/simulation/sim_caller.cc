#include "tests/simulation/sim_caller.h"

#include <utility>

namespace muster {

void SimCaller::FailAt(absl::Time time, uint64_t id, absl::Status why) {
  process_->RunAt(time, [this, id, why = std::move(why)] {
    auto call = pending_.extract(id);
    if (!call.empty()) call.mapped().fail(why);
  });
}

void SimCaller::Die() {
  dead_ = true;
  CancelAll(absl::InternalError("this process is dead"));
}

void SimCaller::CancelAll(const absl::Status& why) {
  for (auto& [id, call] : std::exchange(pending_, {})) call.fail(why);
}

void SimCaller::OnPsDeath(int ps) {
  for (const auto& [id, call] : pending_) {
    if (call.ps != ps) continue;
    FailAt(network_->Arrival(ps, self_), id,
           absl::UnavailableError("the peer reset the connection"));
  }
}

}  // namespace muster
