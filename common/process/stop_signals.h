#ifndef COMMON_PROCESS_STOP_SIGNALS_H_
#define COMMON_PROCESS_STOP_SIGNALS_H_

#include <functional>
#include <thread>

namespace muster {

// Turns the first SIGINT or SIGTERM into a call; the second ends the process at
// once with 128 + its number. Make it in main before any other thread: all
// later threads inherit the blocked signals.
class StopSignals {
 public:
  // `on_stop` is called on a thread of this class.
  explicit StopSignals(std::function<void(int signal)> on_stop);
  ~StopSignals();

  // The threads that start from now on leave both signals to the StopSignals
  // that comes: for a main that starts some before it. Until then they wait.
  static void Block();

  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_PROCESS_STOP_SIGNALS_H_
