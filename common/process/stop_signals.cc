#include "common/process/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

namespace muster {
namespace {

// Ends the thread itself.
constexpr int kQuitSignal = SIGUSR2;

sigset_t WaitedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, kQuitSignal);
  return signals;
}

void WaitForSignals(const std::function<void(int)>& on_stop) {
  const sigset_t signals = WaitedSignals();
  bool stopping = false;
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == kQuitSignal) return;
    if (stopping) _exit(128 + signal);
    stopping = true;
    on_stop(signal);
  }
}

}  // namespace

void StopSignals::Block() {
  const sigset_t signals = WaitedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

StopSignals::StopSignals(std::function<void(int)> on_stop) {
  Block();
  thread_ =
      std::thread([on_stop = std::move(on_stop)] { WaitForSignals(on_stop); });
}

StopSignals::~StopSignals() {
  pthread_kill(thread_.native_handle(), kQuitSignal);
  thread_.join();
}

}  // namespace muster
