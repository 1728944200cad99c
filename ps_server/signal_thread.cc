#include "ps_server/signal_thread.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Ends the thread; nobody else sends it.
constexpr int kQuitSignal = SIGUSR2;

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, kQuitSignal);
  return signals;
}

void WaitForSignals(StopLatch* latch) {
  const sigset_t signals = HandledSignals();
  for (int received = 0;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == kQuitSignal) return;
    if (++received > 1) _exit(128 + signal);
    latch->Stop(
        {128 + signal, signal == SIGINT ? "interrupted (SIGINT)" : "SIGTERM"});
  }
}

}  // namespace

SignalThread::SignalThread(StopLatch* latch) {
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([latch] { WaitForSignals(latch); });
}

SignalThread::~SignalThread() {
  pthread_kill(thread_.native_handle(), kQuitSignal);
  thread_.join();
}

}  // namespace muster
