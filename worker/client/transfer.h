#ifndef WORKER_CLIENT_TRANSFER_H_
#define WORKER_CLIENT_TRANSFER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "worker/client/link/timer_queue.h"
#include "worker/client/transfer_plan.h"
#include "worker/client/transfer_window.h"

namespace muster {

// The shell around one TransferWindow: calls `send` for each part that the
// window wants sent, takes the answers on any thread, and calls `done` once,
// at the end. Thread-safe.
//
// Shared: its owner and every callback on its way hold it.
class Transfer : public std::enable_shared_from_this<Transfer> {
 public:
  struct Environment {
    const Clock* clock;
    Timers* timers;
    // Gets TransferWindow's lines, on any thread.
    Reporter reporter = {};
  };
  // Starts sending one part; every Send is answered by one Answer, possibly
  // before this returns. Called by several threads at once, for a part each,
  // but not after the transfer's `done`: it may refer to what its caller owns
  // until then.
  using SendFunction =
      std::function<void(Transfer* transfer, const TransferWindow::Send&)>;
  // Gets the outcome and the number of repeated sends.
  using DoneFunction = std::function<void(const absl::Status&, int64_t)>;

  // REQUIRES: the environment outlives the transfer's `done`.
  Transfer(const Environment& environment, TransferWindow window,
           SendFunction send, DoneFunction done);

  void Start();
  // See TransferWindow::OpenParts. Sends what the window has room for before
  // it returns.
  void OpenParts(absl::Span<const PartId> parts);
  void Answer(const TransferWindow::Send& send, const absl::Status& status);
  // See TransferWindow::SaySilence.
  void SaySilence();
  // Ends the transfer, unless it has ended. When it returns, no send is under
  // way and none will come. REQUIRES: not called from the send function.
  void Cancel(const absl::Status& status);

  // Keeps `done` back until as many Releases: memory of the caller is in use.
  // False (and nothing to release) if the transfer has ended.
  bool Hold();
  // The same after the end, too; false only when `done` was called.
  bool HoldDone();
  void Release();

 private:
  // A thread that sends, and how many of the queued parts are left to it.
  struct Sender {
    std::thread::id thread;
    size_t left = 0;
    // A frame of the thread is in SendQueued.
    bool is_sending = false;
  };

  // In one go with the window's decision: what was decided before the end must
  // not be carried out after it. As many sends as it adds are left to this
  // thread.
  void Perform(const TransferWindow::Actions& actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Says what is to be said, sends what is to be sent and delivers the end;
  // after each Perform.
  void Proceed() ABSL_LOCKS_EXCLUDED(mu_);
  void SayLines();
  // Sends what is left to this thread, unless a frame below does.
  void SendQueued();
  // The next part that this thread is to send; none if none is left to it.
  std::optional<TransferWindow::Send> NextSend()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DeliverIfFree();
  void OnTimer();
  // This thread among senders_, or its end.
  std::vector<Sender>::iterator FindSender() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsNotSending() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return senders_.empty();
  }

  // Constant after construction.
  const Environment environment_;
  const SendFunction send_;

  absl::Mutex mu_;
  TransferWindow window_ ABSL_GUARDED_BY(mu_);
  // Links may answer before a call returns; without the queue each part would
  // be sent from inside the one before, as deep as there are parts.
  std::deque<TransferWindow::Send> queue_ ABSL_GUARDED_BY(mu_);
  // Who made room for a part sends it: the answers' thread is awake and has its
  // memory in its cache, and who started the transfer soon leaves its core to
  // others.
  std::vector<Sender> senders_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
  int holds_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mu_);
  DoneFunction done_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_CLIENT_TRANSFER_H_
