#ifndef WORKER_CLIENT_TRANSFER_WINDOW_H_
#define WORKER_CLIENT_TRANSFER_WINDOW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/wait_reporter.h"
#include "common/rpc/backoff.h"
#include "worker/client/transfer_plan.h"

namespace muster {

struct TransferOptions {
  // Parts on their way to one shard; 0: as many as suit the way to it.
  int window_parts = 0;
  // From the first failure of a part without a success of its shard between.
  // Long enough for a broken connection, short enough that a worker soon says
  // which ps it waits for: that is the session's part, which starts then.
  absl::Duration give_up_after = absl::Seconds(5);
  // An attempt a second at least, so that it is soon said who is waited for.
  Backoff::Options backoff = {absl::Milliseconds(100), absl::Seconds(1)};
  // The seed of the pauses between attempts.
  uint64_t seed = 1;
};

// Brings every part of one transfer (a pull, a push, a load) to its shard
// exactly once acknowledged: a window of parts for each shard, failed parts
// again with the same identity, and an end. No thread, clock, wait or RPC
// inside: who owns it sends what Actions say and reports what came of it.
//
// Repeated after a pause: Unavailable, DeadlineExceeded, ResourceExhausted,
// Cancelled. Anything else ends the transfer at once: "fenced: " as Aborted,
// others unchanged. After give_up_after the transfer ends with Unavailable,
// but after kPatience times as long if the shard says when to come again
// (RetryAfter): it is there, and has no room. That error carries FailingTime.
// Each message names the shard. Not thread-safe.
class TransferWindow {
 public:
  static constexpr int kPatience = 12;
  static constexpr int kWindowParts = 4;
  // A shard with parts on their way that answers none for so long is named.
  static constexpr absl::Duration kSilence = absl::Seconds(2);

  struct Send {
    int shard;
    int part;
    // From 1. The answer is reported with it.
    int attempt;
    absl::Time deadline;
  };
  struct Actions {
    std::vector<Send> sends;
    // For the operator: a shard that has failed for a second is waited for, or
    // no longer is.
    std::vector<std::string> lines;
    // Call OnTimer then. Not asked for again while such a call is due by then.
    std::optional<absl::Time> wake_at;
    // The end, reported once. Parts may still be on their way after an error;
    // their answers change nothing more.
    std::optional<absl::Status> done;
  };

  // The bytes of a part that is not of this transfer.
  static constexpr int64_t kLeftOut = -1;

  // `part_bytes[shard][part]` and the shards' names, "/job:ps/task:0".
  TransferWindow(const TransferOptions& options,
                 const std::vector<std::vector<int64_t>>& part_bytes,
                 std::vector<std::string> shard_names);

  // So many parts suit the way to `shard` (ParameterLink::best_window_parts);
  // without this call kWindowParts do. Before Start.
  void SuitWay(int shard, int window_parts);

  // No part is sent until it is opened. Before Start.
  void CloseParts();

  Actions Start(absl::Time now);
  // These parts may be sent. Once for each, in any order.
  Actions OpenParts(absl::Span<const PartId> parts, absl::Time now);
  // The answer to a Send. One that was already given is ignored.
  Actions OnAnswer(int shard, int part, int attempt, const absl::Status& status,
                   absl::Time now);
  Actions OnTimer(absl::Time now);
  // Says who has not answered for kSilence, or is silent still; to be asked
  // each second or so.
  Actions SaySilence(absl::Time now);

  // Ends the transfer with this error, unless it has ended.
  Actions Cancel(const absl::Status& status);

  bool ended() const { return ended_; }
  // Parts sent and not yet answered.
  int in_flight() const;
  int64_t retries() const { return retries_; }

 private:
  enum class PartState { kClosed, kWaiting, kInFlight, kPausing, kDone };
  struct Part {
    int64_t bytes = 0;
    PartState state = PartState::kWaiting;
    int attempt = 0;
    absl::Time retry_at;
    // Answers that it, or they, were damaged on the way.
    int damaged = 0;
  };
  struct Shard {
    Shard(std::string shard_name, const Backoff& pauses)
        : name(std::move(shard_name)), backoff(pauses) {}

    std::string name;
    std::vector<Part> parts;
    Backoff backoff;
    int window_parts = kWindowParts;
    int in_flight = 0;
    // Parts between two attempts. They keep their places in the window: a shard
    // that is away must not be offered every part of the model.
    int pausing = 0;
    int64_t in_flight_bytes = 0;
    int done = 0;
    // Every part before it is done.
    size_t first_undone = 0;
    // For the shard, from its first failure since the last success on.
    WaitReporter waiting;
    // The last answer, or the first part on its way since there was none.
    absl::Time heard_at;
    // For an answer, while no part has failed.
    WaitReporter silence;
  };

  // Everything that may be done now.
  Actions Continue(absl::Time now);
  void FillWindow(Shard* shard, int index, absl::Time now, Actions* actions);
  Actions End(const absl::Status& status);
  void OnFailure(Shard* shard, Part* part,
                 std::optional<absl::Duration> retry_after, absl::Time now);
  // Says, when it is due, that the shard is waited for.
  void SayWait(Shard* shard, absl::string_view failure, absl::Time now);

  const TransferOptions options_;
  std::vector<Shard> shards_;
  int64_t retries_ = 0;
  // For the next Actions.
  std::vector<std::string> lines_;
  // The earliest OnTimer that was asked for and has not come.
  absl::Time next_timer_ = absl::InfiniteFuture();
  bool ended_ = false;
};

}  // namespace muster

#endif  // WORKER_CLIENT_TRANSFER_WINDOW_H_
