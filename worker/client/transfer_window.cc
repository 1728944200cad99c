#include "worker/client/transfer_window.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/deadline.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/retry_after.h"
#include "worker/client/call_status.h"
#include "worker/client/failing_time.h"

namespace muster {
namespace {

// An aborted part is not sent again: its step is begun anew. A connection that
// was cut can look cancelled; we cancel nothing here.
bool MayRepeat(const absl::Status& status) {
  return IsTransient(status) && !absl::IsAborted(status);
}

// A link may have named its peer already.
std::string WithName(const std::string& shard, const absl::Status& status) {
  if (absl::StrContains(status.message(), shard)) {
    return std::string(status.message());
  }
  return absl::StrCat(shard, ": ", status.message());
}

}  // namespace

TransferWindow::TransferWindow(
    const TransferOptions& options,
    const std::vector<std::vector<int64_t>>& part_bytes,
    std::vector<std::string> shard_names)
    : options_(options) {
  shards_.reserve(part_bytes.size());
  for (size_t i = 0; i < part_bytes.size(); ++i) {
    shards_.emplace_back(std::move(shard_names[i]),
                         Backoff(options.backoff, options.seed + i));
    Shard& shard = shards_.back();
    if (options.window_parts > 0) shard.window_parts = options.window_parts;
    for (const int64_t bytes : part_bytes[i]) {
      Part& part = shard.parts.emplace_back();
      part.bytes = bytes;
      if (bytes != kLeftOut) continue;
      part.state = PartState::kDone;
      ++shard.done;
    }
  }
}

void TransferWindow::SuitWay(int shard, int window_parts) {
  if (options_.window_parts == 0) shards_[shard].window_parts = window_parts;
}

void TransferWindow::CloseParts() {
  for (Shard& shard : shards_) {
    for (Part& part : shard.parts) {
      if (part.state != PartState::kDone) part.state = PartState::kClosed;
    }
  }
}

TransferWindow::Actions TransferWindow::Start(absl::Time now) {
  return Continue(now);
}

TransferWindow::Actions TransferWindow::OpenParts(
    absl::Span<const PartId> parts, absl::Time now) {
  for (const PartId& id : parts) {
    shards_[id.shard].parts[id.part].state = PartState::kWaiting;
  }
  return Continue(now);
}

TransferWindow::Actions TransferWindow::OnAnswer(int shard_index,
                                                 int part_index, int attempt,
                                                 const absl::Status& status,
                                                 absl::Time now) {
  Shard& shard = shards_[shard_index];
  Part& part = shard.parts[part_index];
  if (part.state != PartState::kInFlight || part.attempt != attempt) return {};
  --shard.in_flight;
  shard.in_flight_bytes -= part.bytes;
  shard.heard_at = now;
  const bool was_silent = shard.silence.Stop();
  if (status.ok()) {
    part.state = PartState::kDone;
    ++shard.done;
    shard.backoff.Reset();
    if (shard.waiting.Stop() || was_silent) {
      lines_.push_back(absl::StrCat("no longer waiting for ", shard.name));
    }
    return Continue(now);
  }
  part.state = PartState::kPausing;
  ++shard.pausing;
  if (ended_) return {};
  const bool was_damaged = IsDamaged(status) && ++part.damaged < kDamageTries;
  if (!MayRepeat(status) && !was_damaged) {
    return End(Annotate(AbortedIfFenced(status), shard.name));
  }
  const std::optional<absl::Duration> retry_after = RetryAfter(status);
  const absl::Duration patience =
      options_.give_up_after * (retry_after.has_value() ? kPatience : 1);
  const std::string failure = WithName(shard.name, status);
  SayWait(&shard, failure, now);
  const absl::Duration failing = now - shard.waiting.since();
  if (failing >= patience) {
    absl::Status error = absl::UnavailableError(absl::StrCat(
        failure, "; given up after ", absl::FormatDuration(failing)));
    SetFailingTime(failing, &error);
    return End(error);
  }
  OnFailure(&shard, &part, retry_after, now);
  return Continue(now);
}

void TransferWindow::OnFailure(Shard* shard, Part* part,
                               std::optional<absl::Duration> retry_after,
                               absl::Time now) {
  ++retries_;
  // With the jitter on top: all who were refused must not come at once.
  part->retry_at =
      now + retry_after.value_or(absl::ZeroDuration()) + shard->backoff.Next();
}

void TransferWindow::SayWait(Shard* shard, absl::string_view failure,
                             absl::Time now) {
  std::string line = shard->waiting.WaitFor(failure, now);
  if (!line.empty()) lines_.push_back(std::move(line));
}

TransferWindow::Actions TransferWindow::OnTimer(absl::Time now) {
  if (now >= next_timer_) next_timer_ = absl::InfiniteFuture();
  return Continue(now);
}

TransferWindow::Actions TransferWindow::SaySilence(absl::Time now) {
  Actions actions;
  if (ended_) return actions;
  for (Shard& shard : shards_) {
    if (shard.in_flight == 0 || now - shard.heard_at < kSilence) continue;
    const std::string what = absl::StrCat(
        shard.name, " to answer ", shard.in_flight,
        shard.in_flight == 1 ? " message" : " messages", " of this transfer");
    shard.silence.WaitFor(what, shard.heard_at);
    std::string line = shard.silence.WaitFor(what, now);
    if (!line.empty()) actions.lines.push_back(std::move(line));
  }
  return actions;
}

TransferWindow::Actions TransferWindow::Cancel(const absl::Status& status) {
  if (ended_) return {};
  return End(status);
}

int TransferWindow::in_flight() const {
  int sum = 0;
  for (const Shard& shard : shards_) sum += shard.in_flight;
  return sum;
}

TransferWindow::Actions TransferWindow::Continue(absl::Time now) {
  if (ended_) return {};
  Actions actions;
  bool all_done = true;
  for (size_t i = 0; i < shards_.size(); ++i) {
    FillWindow(&shards_[i], static_cast<int>(i), now, &actions);
    all_done &= shards_[i].done == static_cast<int>(shards_[i].parts.size());
  }
  if (all_done) return End(absl::OkStatus());
  actions.lines = std::exchange(lines_, {});
  if (actions.wake_at.has_value()) {
    if (*actions.wake_at < next_timer_) {
      next_timer_ = *actions.wake_at;
    } else {
      actions.wake_at.reset();
    }
  }
  return actions;
}

void TransferWindow::FillWindow(Shard* shard, int index, absl::Time now,
                                Actions* actions) {
  // Looks at no more parts than it must: a model that is loaded has one for
  // each of its tensors.
  while (shard->first_undone < shard->parts.size() &&
         shard->parts[shard->first_undone].state == PartState::kDone) {
    ++shard->first_undone;
  }
  int pausing_ahead = shard->pausing;
  for (size_t i = shard->first_undone; i < shard->parts.size(); ++i) {
    Part& part = shard->parts[i];
    if (part.state == PartState::kPausing) --pausing_ahead;
    if (part.state == PartState::kPausing && part.retry_at > now) {
      if (!actions->wake_at.has_value() || part.retry_at < *actions->wake_at) {
        actions->wake_at = part.retry_at;
      }
      continue;
    }
    if (part.state == PartState::kClosed || part.state == PartState::kDone ||
        part.state == PartState::kInFlight) {
      continue;
    }
    if (part.state == PartState::kPausing) {
      --shard->pausing;
    } else if (shard->in_flight + shard->pausing >= shard->window_parts) {
      if (pausing_ahead == 0) break;
      continue;
    }
    part.state = PartState::kInFlight;
    ++part.attempt;
    if (shard->in_flight == 0) shard->heard_at = now;
    ++shard->in_flight;
    shard->in_flight_bytes += part.bytes;
    // The part waits behind those that share its connection.
    actions->sends.push_back({index, static_cast<int>(i), part.attempt,
                              now + TransferTimeout(shard->in_flight_bytes)});
  }
}

TransferWindow::Actions TransferWindow::End(const absl::Status& status) {
  ended_ = true;
  Actions actions;
  actions.done = status;
  actions.lines = std::exchange(lines_, {});
  return actions;
}

}  // namespace muster
