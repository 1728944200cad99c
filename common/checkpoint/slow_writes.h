#ifndef COMMON_CHECKPOINT_SLOW_WRITES_H_
#define COMMON_CHECKPOINT_SLOW_WRITES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster {

// The writes that are under way, and reads, and what is to be said of those
// that take long: a line after 10 s and every 30 s from then on, and, once a
// write has taken longer than a limit, a report. Knows no clock. Not
// thread-safe.
class SlowWrites {
 public:
  struct Due {
    std::vector<std::string> lines;
    // The write that is over the limit, "the save of step 400, which ...": at
    // once and with each line; "" when it has ended.
    std::optional<std::string> overdue;
  };

  explicit SlowWrites(absl::Duration limit) : limit_(limit) {}

  enum class Kind { kWrite, kRead };

  // The "save of step 400" begins. Returns its number, for End.
  int64_t Begin(std::string what, absl::Time now, Kind kind = Kind::kWrite);
  void End(int64_t number) { writes_.erase(number); }

  // What is due at `now`; each thing once.
  Due Handle(absl::Time now);
  // When Handle wants to be called, also after each End at the latest.
  absl::Time next_due() const;

 private:
  struct Write {
    std::string what;
    absl::Time since;
    absl::Time say_at;
    absl::Time overdue_at;
    bool is_reported = false;
  };

  const absl::Duration limit_;
  std::map<int64_t, Write> writes_;
  int64_t last_number_ = 0;
  // The last report was of a write that was over the limit.
  bool reported_overdue_ = false;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_SLOW_WRITES_H_
