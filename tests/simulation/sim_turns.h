#ifndef TESTS_SIMULATION_SIM_TURNS_H_
#define TESTS_SIMULATION_SIM_TURNS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "ps_server/service/strand.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/random.h"
#include "tests/simulation/sim_process.h"

namespace muster {

// The turns of a state machine of one ps process, on production's Strand: on
// the threads of those who ask, as ShardServer has it, or on a thread of its
// own, as CoordinationServer has it. A turn takes time, in which others ask,
// time passes, and the process may be stopped, killed or drained. Judges that
// turns are taken one at a time, in the order in which they were asked for,
// and each of them before the close. Lives as long as the simulation.
class SimTurns {
 public:
  using Turn = std::function<void()>;
  using Refusal = std::function<void(const absl::Status&)>;

  struct Options {
    SimProcess* process = nullptr;
    uint64_t seed = 0;
    // A pause in a turn.
    absl::Duration longest_pause;
    Bug bug = Bug::kNone;
    // A promise is broken.
    std::function<void(absl::string_view)> fail;
  };

  // On two threads, which ask for what arrives.
  explicit SimTurns(const Options& options);
  // On the strand's own thread.
  SimTurns(const Options& options, const Strand::Idle& idle);

  // Takes `turn` when it is its turn. Refuses it at once if nothing is taken
  // any more, and in its turn after `deadline`. Callable from anywhere.
  void Ask(absl::Time deadline, Turn turn, Refusal refuse);

  // Takes no more, and returns when what was asked for has been carried out.
  // REQUIRES: called in a thread of the simulation, not in a turn.
  void Close();
  // kill -9: nothing is carried out any more.
  void Die();

 private:
  struct Asked {
    absl::Time deadline;
    Turn turn;
    Refusal refuse;
  };

  // A thread that asks.
  void RunAsker();
  // Asks for what has arrived first, if anything has.
  void PostFirst();
  void Post(Asked asked);
  void Run(int64_t number, const Asked& asked);
  void Take(const Turn& turn);
  void Judge(int64_t number);
  void Pause();
  absl::Duration Advance(const Strand::Idle& idle) const;

  const Options options_;
  const bool has_askers_;
  Random random_;

  // The threads that ask wait with it. All of them are on one real thread, so
  // that it guards nothing.
  absl::Mutex mu_;
  // Requests that the threads are to ask.
  std::deque<Asked> arrived_;
  // kLaterTurnFirst: what has been posted.
  std::vector<Turn> posted_;
  int64_t next_number_ = 1;
  int64_t last_number_ = 0;
  int64_t taken_ = 0;
  int64_t begun_ = 0;
  bool in_turn_ = false;
  bool closing_ = false;
  bool closed_ = false;
  bool dead_ = false;

  // Last: their threads use all of the above.
  Strand strand_;
  std::vector<std::unique_ptr<ClockThread>> threads_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_TURNS_H_
