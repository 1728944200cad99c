#include "common/process/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kNotices[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};

// A signal that follows this soon is no answer to what the first one did.
constexpr absl::Duration kOneWish = absl::Seconds(1);

bool IsNotice(int signal) { return signal != SIGINT && signal != SIGTERM; }

bool IsIgnored(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

// sigwait takes an ignored signal, too.
sigset_t WaitedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  for (const int notice : kNotices) {
    if (!IsIgnored(notice)) sigaddset(&signals, notice);
  }
  return signals;
}

}  // namespace

void StopSignals::EndByNotices() {
  for (const int notice : kNotices) {
    if (IsIgnored(notice)) continue;
    signal(notice, [](int) { _exit(128 + SIGTERM); });
  }
}

void StopSignals::Block() {
  const sigset_t signals = WaitedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

StopSignals::StopSignals(std::function<void(int)> on_stop, Reporter reporter,
                         const Clock* clock)
    : on_stop_(std::move(on_stop)),
      reporter_(std::move(reporter)),
      clock_(clock) {
  Block();
  thread_ = std::thread([this] { WaitForSignals(); });
}

StopSignals::~StopSignals() {
  ends_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

StopSignals::Rule::Answer StopSignals::Rule::OnSignal(int signal,
                                                      absl::Time now) {
  if (!IsNotice(signal)) {
    if (now - asked_ >= kOneWish) return Answer::kEndAtOnce;
    asked_ = std::min(asked_, now);
  }
  return std::exchange(is_stopping_, true) ? Answer::kNothing : Answer::kStop;
}

void StopSignals::WaitForSignals() {
  const sigset_t signals = WaitedSignals();
  Rule rule;
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (ends_) return;
    const Rule::Answer answer = rule.OnSignal(signal, clock_->Now());
    if (answer == Rule::Answer::kEndAtOnce) _exit(128 + signal);
    if (answer == Rule::Answer::kStop) Stop(signal);
  }
}

void StopSignals::Stop(int signal) {
  if (!IsNotice(signal)) return on_stop_(signal);
  reporter_.Info(
      absl::StrCat("SIG", sigabbrev_np(signal), " is taken as SIGTERM"));
  on_stop_(SIGTERM);
}

}  // namespace muster
