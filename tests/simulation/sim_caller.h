#ifndef TESTS_SIMULATION_SIM_CALLER_H_
#define TESTS_SIMULATION_SIM_CALLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/parameter_link.h"
#include "proto/coordination_service.pb.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/simulator.h"

namespace muster {

// The calls of one process on their way to ps tasks and back. `done` of each
// call comes exactly once: with the answer, at the deadline, when the ps
// process dies, or when the caller does. Lives as long as the simulation.
class SimCaller {
 public:
  // Both outlive the caller.
  SimCaller(SimProcess* process, SimNetwork* network, Endpoint self)
      : process_(process), network_(network), self_(self) {}

  // Calls serve(ps process, request, reply) at the ps task, unless the request
  // gets lost; twice if it is duplicated.
  template <typename Reply, typename Request, typename Serve>
  void Call(int ps, Request request, absl::Time deadline,
            ReplyCallback<Reply> done, Serve serve);

  // This process is gone: what is under way ends, and new calls fail at once.
  void Die();
  // The ps process died: those whom it owed an answer learn it.
  void OnPsDeath(int ps);
  // Ends what is under way, as closing the connections does.
  void CancelAll(const absl::Status& why);

 private:
  struct Pending {
    int ps;
    std::function<void(const absl::Status&)> fail;
  };

  // Takes the call out; false if it has ended.
  bool Settle(uint64_t id) { return pending_.erase(id) > 0; }
  void FailAt(absl::Time time, uint64_t id, absl::Status why);

  SimProcess* const process_;
  SimNetwork* const network_;
  const Endpoint self_;
  bool dead_ = false;
  uint64_t next_ = 1;
  std::map<uint64_t, Pending> pending_;
};

template <typename Reply, typename Request, typename Serve>
void SimCaller::Call(int ps, Request request, absl::Time deadline,
                     ReplyCallback<Reply> done, Serve serve) {
  if (dead_) return done(absl::InternalError("this process is dead"));
  const uint64_t id = next_++;
  pending_[id] = {ps, [done](const absl::Status& why) { done(why); }};
  FailAt(deadline, id, absl::DeadlineExceededError("no answer in time"));
  const SimNetwork::Fate fate = network_->Draw();
  const absl::Status reset = absl::UnavailableError("the connection broke");
  if (fate.request_lost) {
    if (fate.loss_is_seen) FailAt(network_->Arrival(ps, self_), id, reset);
    return;
  }
  const auto deliver = [=, shared = std::make_shared<const Request>(
                               std::move(request))](bool is_first) {
    SimPs* const process = network_->ps(ps);
    if (process == nullptr) {
      return FailAt(network_->Arrival(ps, self_), id,
                    absl::UnavailableError("connection refused"));
    }
    if (process_->Now() >= deadline) return;
    serve(*process, *shared, [=](absl::StatusOr<Reply> reply) {
      if (!is_first) return;
      const absl::Time arrival = network_->Arrival(ps, self_);
      if (fate.reply_lost) {
        if (fate.loss_is_seen) FailAt(arrival, id, reset);
        return;
      }
      process_->RunAt(arrival, [=] {
        if (Settle(id)) done(reply);
      });
    });
  };
  for (const bool is_first : {true, false}) {
    if (!is_first && !fate.duplicated) continue;
    const absl::Time arrival = is_first ? network_->Arrival(self_, ps)
                                        : network_->SecondArrival(self_, ps);
    process_->simulator()->RunAt(
        arrival, [=] { network_->WhenAwake(ps, [=] { deliver(is_first); }); });
  }
}

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_CALLER_H_
