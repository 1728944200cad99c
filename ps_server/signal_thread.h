#ifndef PS_SERVER_SIGNAL_THREAD_H_
#define PS_SERVER_SIGNAL_THREAD_H_

#include <thread>

#include "ps_server/stop_latch.h"

namespace muster {

// Turns SIGINT and SIGTERM into a stop with exit code 128 + n; the second
// signal ends the process at once with that code. Make it in main before any
// other thread: all later threads inherit the blocked signals.
class SignalThread {
 public:
  // `latch` outlives this.
  explicit SignalThread(StopLatch* latch);
  ~SignalThread();

  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  std::thread thread_;
};

}  // namespace muster

#endif  // PS_SERVER_SIGNAL_THREAD_H_
