#ifndef COMMON_PROCESS_STOP_SIGNALS_H_
#define COMMON_PROCESS_STOP_SIGNALS_H_

#include <atomic>
#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"

namespace muster {

// The codes of exit_code.h and of signals, for `--help`.
inline constexpr char kExitCodesHelp[] =
    "Exit codes: 0 done, 1 the training failed, 2 a bad flag, file or\n"
    "configuration, 3 an unusable checkpoint, 4 refused, 138 peers lost or "
    "last\n"
    "save missing (try again), 130 SIGINT, 143 SIGTERM, or what batch systems\n"
    "send: SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU (unless ignored). After "
    "a\n"
    "signal the model is saved; a second SIGINT or SIGTERM ends at once.";

// Turns the first signal that asks for the end into a call. Beside SIGINT and
// SIGTERM these are the notices by which terminals and batch systems announce
// it, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM and SIGXCPU: each is a SIGTERM, but
// stays ignored where it was when the process began (nohup). The second SIGINT
// or SIGTERM ends the process at once with 128 + its number, if it comes a
// second or more after the first: `timeout` sends its own to the process and
// then to its group. Notices never do: a shell repeats its SIGHUP, the kernel
// SIGXCPU in each second, and Slurm follows a --signal with SIGTERM. Make it in
// main before any other thread: all later threads inherit the blocked signals.
class StopSignals {
 public:
  // What a signal does, by those before it.
  class Rule {
   public:
    enum class Answer { kNothing, kStop, kEndAtOnce };
    Answer OnSignal(int signal, absl::Time now);

   private:
    bool is_stopping_ = false;
    // When the first SIGINT or SIGTERM came.
    absl::Time asked_ = absl::InfiniteFuture();
  };

  // `on_stop` gets SIGINT or SIGTERM, on a thread of this class. `reporter`
  // says which notice it was. `clock` outlives it.
  explicit StopSignals(std::function<void(int signal)> on_stop,
                       Reporter reporter = Reporter(),
                       const Clock* clock = SystemClock());
  ~StopSignals();

  // The beginning of main: until there is a StopSignals, a notice ends the
  // process as SIGTERM does, and not with a code that means something else
  // (128 + SIGUSR1 is kExitRetryable).
  static void EndByNotices();

  // The threads that start from now on leave the signals to the StopSignals
  // that comes: for a main that starts some before it. Until then they wait.
  static void Block();

  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void WaitForSignals();
  void Stop(int signal);

  const std::function<void(int signal)> on_stop_;
  const Reporter reporter_;
  const Clock* const clock_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_PROCESS_STOP_SIGNALS_H_
