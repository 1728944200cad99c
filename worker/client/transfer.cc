#include "worker/client/transfer.h"

#include <utility>

namespace muster {

Transfer::Transfer(const Environment& environment, TransferMachine machine,
                   SendFunction send, DoneFunction done)
    : environment_(environment),
      send_(std::move(send)),
      machine_(std::move(machine)),
      done_(std::move(done)) {}

void Transfer::Start() {
  {
    absl::MutexLock lock(&mu_);
    Perform(machine_.Start(environment_.clock->Now()));
  }
  Proceed();
}

void Transfer::OpenParts(absl::Span<const PartId> parts) {
  {
    absl::MutexLock lock(&mu_);
    Perform(machine_.OpenParts(parts, environment_.clock->Now()));
  }
  Proceed();
}

void Transfer::Answer(const TransferMachine::Send& send,
                      const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    Perform(machine_.OnAnswer(send.shard, send.part, send.attempt, status,
                              environment_.clock->Now()));
  }
  Proceed();
}

void Transfer::Cancel(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    Perform(machine_.Cancel(status));
  }
  Proceed();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &Transfer::IsNotSending));
}

bool Transfer::Hold() {
  absl::MutexLock lock(&mu_);
  if (machine_.ended()) return false;
  ++holds_;
  return true;
}

void Transfer::Release() {
  {
    absl::MutexLock lock(&mu_);
    --holds_;
  }
  DeliverIfFree();
}

void Transfer::OnTimer() {
  {
    absl::MutexLock lock(&mu_);
    Perform(machine_.OnTimer(environment_.clock->Now()));
  }
  Proceed();
}

void Transfer::Perform(const TransferMachine::Actions& actions) {
  queue_.insert(queue_.end(), actions.sends.begin(), actions.sends.end());
  if (actions.done.has_value()) {
    outcome_ = actions.done;
    queue_.clear();
  }
  if (actions.wake_at.has_value()) {
    environment_.timers->RunAt(
        *actions.wake_at, [self = shared_from_this()] { self->OnTimer(); });
  }
}

void Transfer::Proceed() {
  SendQueued();
  DeliverIfFree();
}

void Transfer::SendQueued() {
  {
    absl::MutexLock lock(&mu_);
    if (sending_) return;
    sending_ = true;
  }
  for (;;) {
    TransferMachine::Send send;
    {
      absl::MutexLock lock(&mu_);
      if (queue_.empty()) {
        sending_ = false;
        return;
      }
      send = queue_.front();
      queue_.pop_front();
    }
    send_(this, send);
  }
}

void Transfer::DeliverIfFree() {
  DoneFunction done;
  absl::Status outcome;
  int64_t retries = 0;
  {
    absl::MutexLock lock(&mu_);
    // While a thread sends, it may be reading the caller's memory.
    if (!outcome_.has_value() || holds_ > 0 || sending_ || !done_) return;
    done = std::exchange(done_, nullptr);
    outcome = *outcome_;
    retries = machine_.retries();
  }
  done(outcome, retries);
}

}  // namespace muster
