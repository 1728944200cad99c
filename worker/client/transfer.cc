#include "worker/client/transfer.h"

#include <algorithm>
#include <utility>

namespace muster {

Transfer::Transfer(const Environment& environment, TransferWindow window,
                   SendFunction send, DoneFunction done)
    : environment_(environment),
      send_(std::move(send)),
      window_(std::move(window)),
      done_(std::move(done)) {}

void Transfer::Start() {
  {
    absl::MutexLock lock(&mu_);
    Perform(window_.Start(environment_.clock->Now()));
  }
  Proceed();
}

void Transfer::OpenParts(absl::Span<const PartId> parts) {
  {
    absl::MutexLock lock(&mu_);
    Perform(window_.OpenParts(parts, environment_.clock->Now()));
  }
  Proceed();
}

void Transfer::Answer(const TransferWindow::Send& send,
                      const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    Perform(window_.OnAnswer(send.shard, send.part, send.attempt, status,
                             environment_.clock->Now()));
  }
  Proceed();
}

void Transfer::SaySilence() {
  {
    absl::MutexLock lock(&mu_);
    Perform(window_.SaySilence(environment_.clock->Now()));
  }
  SayLines();
}

void Transfer::Cancel(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    Perform(window_.Cancel(status));
  }
  Proceed();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &Transfer::IsNotSending));
}

bool Transfer::Hold() {
  absl::MutexLock lock(&mu_);
  if (window_.ended()) return false;
  ++holds_;
  return true;
}

bool Transfer::HoldDone() {
  absl::MutexLock lock(&mu_);
  if (!done_) return false;
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
    Perform(window_.OnTimer(environment_.clock->Now()));
  }
  Proceed();
}

std::vector<Transfer::Sender>::iterator Transfer::FindSender() {
  return std::find_if(senders_.begin(), senders_.end(),
                      [id = std::this_thread::get_id()](const Sender& sender) {
                        return sender.thread == id;
                      });
}

void Transfer::Perform(const TransferWindow::Actions& actions) {
  queue_.insert(queue_.end(), actions.sends.begin(), actions.sends.end());
  lines_.insert(lines_.end(), actions.lines.begin(), actions.lines.end());
  if (!actions.sends.empty()) {
    auto sender = FindSender();
    if (sender == senders_.end()) {
      sender = senders_.insert(sender, {std::this_thread::get_id()});
    }
    sender->left += actions.sends.size();
  }
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
  SayLines();
  SendQueued();
  DeliverIfFree();
}

void Transfer::SayLines() {
  std::vector<std::string> lines;
  {
    absl::MutexLock lock(&mu_);
    lines.swap(lines_);
  }
  for (const std::string& line : lines) environment_.reporter.Info(line);
}

void Transfer::SendQueued() {
  {
    absl::MutexLock lock(&mu_);
    const auto self = FindSender();
    if (self == senders_.end() || self->is_sending) return;
    self->is_sending = true;
  }
  for (;;) {
    std::optional<TransferWindow::Send> send;
    {
      absl::MutexLock lock(&mu_);
      send = NextSend();
    }
    if (!send.has_value()) return;
    send_(this, *send);
  }
}

std::optional<TransferWindow::Send> Transfer::NextSend() {
  const auto self = FindSender();
  // The end empties the queue.
  if (self->left == 0 || queue_.empty()) {
    senders_.erase(self);
    return std::nullopt;
  }
  --self->left;
  const TransferWindow::Send send = queue_.front();
  queue_.pop_front();
  return send;
}

void Transfer::DeliverIfFree() {
  DoneFunction done;
  absl::Status outcome;
  int64_t retries = 0;
  {
    absl::MutexLock lock(&mu_);
    // While a thread sends, it may be reading the caller's memory.
    if (!outcome_.has_value() || holds_ > 0 || !IsNotSending() || !done_) {
      return;
    }
    done = std::exchange(done_, nullptr);
    outcome = *outcome_;
    retries = window_.retries();
  }
  done(outcome, retries);
}

}  // namespace muster
