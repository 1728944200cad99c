#ifndef TESTS_SIMULATION_SIM_NETWORK_H_
#define TESTS_SIMULATION_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/parameter_service.pb.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/simulator.h"

namespace muster {

class SimPs;

// A place in the network: ps task i is i, worker i is kFirstWorker + i.
using Endpoint = int;
inline constexpr Endpoint kFirstWorker = 100;

// Decides on messages: late, lost, twice, clogged. It knows where each ps
// task's present process is.
class SimNetwork {
 public:
  // The fate of one call.
  struct Fate {
    bool request_lost = false;
    bool reply_lost = false;
    // The request comes twice.
    bool duplicated = false;
    // A loss is noticed (the connection broke); else only its deadline ends it.
    bool loss_is_seen = false;
  };

  SimNetwork(Simulator* simulator, const Scenario& scenario)
      : simulator_(simulator),
        scenario_(scenario),
        random_(scenario.seed * 31 + 2),
        ps_(scenario.num_ps, nullptr),
        processes_(scenario.num_ps, nullptr) {}

  Fate Draw();
  // When a message that is sent now arrives.
  absl::Time Arrival(Endpoint from, Endpoint to);
  // The same for the second of two.
  absl::Time SecondArrival(Endpoint from, Endpoint to);
  // A job's chief sends ps task 0 a message about an epoch. A copy of the last
  // such message may come from the grave: just after the next start of the
  // chief has registered, whose place it would take. `deliver` is dropped with
  // the next.
  void KeepCopy(const std::string& space, std::function<void()> deliver);
  void OnChiefRegistered(const std::string& space);
  // A start of a task has registered, and `again` would have it do so once
  // more: perhaps when the next start of the task has.
  void OnRegistered(const Sender& sender, std::function<void()> again);
  // Nothing passes between the two (or from and to `a`) until then.
  void Clog(Endpoint a, Endpoint b, absl::Time until);
  void ClogAll(Endpoint a, absl::Time until);
  // From here on nothing is lost, late or clogged.
  void Heal() { healed_ = true; }

  // The process that serves this ps task now; null if there is none.
  SimPs* ps(int task) const { return ps_[task]; }
  // Null: it does not serve any more.
  void set_ps(int task, SimPs* ps, SimProcess* process) {
    ps_[task] = ps;
    processes_[task] = process;
  }
  // Runs `function` now, or when the ps task's process is not stopped.
  void WhenAwake(int task, const std::function<void()>& function);

 private:
  absl::Time ClearAt(Endpoint from, Endpoint to) const;

  Simulator* const simulator_;
  const Scenario scenario_;
  Random random_;
  bool healed_ = false;
  std::vector<SimPs*> ps_;
  std::vector<SimProcess*> processes_;
  std::map<std::pair<Endpoint, Endpoint>, absl::Time> clogged_;
  std::map<Endpoint, absl::Time> all_clogged_;
  // By namespace.
  std::map<std::string, std::function<void()>> copies_;
  // The newest start of each worker task, and what registers it again.
  struct Registration {
    uint64_t incarnation = 0;
    std::function<void()> again;
  };
  // By namespace and index.
  std::map<std::pair<std::string, int>, Registration> registrations_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_NETWORK_H_
