#include "common/checkpoint/slow_writes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr absl::Duration kSayFirst = absl::Seconds(10);
constexpr absl::Duration kSayEvery = absl::Seconds(30);

}  // namespace

int64_t SlowWrites::Begin(std::string what, absl::Time now, Kind kind) {
  writes_[++last_number_] = {
      std::move(what), now, now + kSayFirst,
      kind == Kind::kWrite ? now + limit_ : absl::InfiniteFuture()};
  return last_number_;
}

SlowWrites::Due SlowWrites::Handle(absl::Time now) {
  Due due;
  bool is_any_overdue = false;
  for (auto& [number, write] : writes_) {
    const bool is_said = now >= write.say_at;
    const bool is_overdue = now >= write.overdue_at;
    while (write.say_at <= now) write.say_at += kSayEvery;
    if (is_said) {
      due.lines.push_back(absl::StrCat(
          "The ", write.what, " has taken ",
          absl::ToInt64Seconds(now - write.since), " s so far",
          is_overdue ? ": ps task 0 grants no step until it is over" : ""));
    }
    is_any_overdue |= is_overdue;
    if (!is_overdue || (write.is_reported && !is_said)) continue;
    write.is_reported = true;
    due.overdue = absl::StrCat("the ", write.what, ", which has taken ",
                               absl::ToInt64Seconds(now - write.since),
                               " s (checkpoint.max_save_seconds: ",
                               absl::ToDoubleSeconds(limit_), ")");
  }
  if (std::exchange(reported_overdue_, is_any_overdue) && !is_any_overdue) {
    due.overdue = "";
  }
  return due;
}

absl::Time SlowWrites::next_due() const {
  absl::Time due = absl::InfiniteFuture();
  for (const auto& [number, write] : writes_) {
    due = std::min(due, write.say_at);
    if (!write.is_reported) due = std::min(due, write.overdue_at);
  }
  return due;
}

}  // namespace muster
