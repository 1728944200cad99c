#include "common/summary/merged_profile.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/summary/chrome_trace.h"

namespace muster {
namespace {

// In microseconds: a clock begins with its machine, which is up for less than
// 30 years.
constexpr int64_t kLatest = 1'000'000'000'000'000;

bool IsOfPs(const ProfilePart& part) {
  return absl::StartsWith(part.task(), "/job:ps/");
}

// ps tasks, then the others, each in the order of their numbers.
bool StandsBefore(const ProfilePart& a, const ProfilePart& b) {
  const auto key = [](const ProfilePart& part) {
    return std::make_tuple(!IsOfPs(part), part.task().size(), part.task());
  };
  return key(a) < key(b);
}

bool MakesSense(const ProfileEvent& event, const ProfilePart& part) {
  return event.name() >= 0 && event.name() < part.names_size() &&
         event.lane() >= 0 && event.lane() < part.lanes_size() &&
         event.begin_us() >= 0 && event.begin_us() < kLatest &&
         event.duration_us() >= 0 && event.duration_us() < kLatest;
}

// By the clock of ps task 0.
absl::Time BeginOf(const ProfileEvent& event, const ProfilePart& part) {
  return absl::FromUnixMicros(event.begin_us()) +
         absl::Microseconds(
             std::clamp(part.to_first_ps_us(), -kLatest, kLatest));
}

std::string LabelOf(const ProfilePart& part) {
  std::string label = absl::StrCat("clock within ", part.error_us(),
                                   " us of that of /job:ps/task:0");
  if (part.left_out() > 0) {
    absl::StrAppend(&label, "; ", part.left_out(),
                    " spans at the end found no room");
  }
  return label;
}

class Merge {
 public:
  void Add(const ProfilePart& part) {
    trace_.BeginProcess(part.task(), next_process_, LabelOf(part));
    for (int i = 0; i < part.lanes_size(); ++i) {
      trace_.NameLane(i, part.lanes(i));
    }
    for (const ProfileEvent& event : part.events()) {
      if (MakesSense(event, part)) Add(event, part);
    }
    ++next_process_;
  }

  void AddMissing(const std::string& missing) {
    trace_.BeginProcess(missing, next_process_++, "not in this profile");
  }

  std::string Json() { return trace_.Json(); }

 private:
  void Add(const ProfileEvent& event, const ProfilePart& part) {
    const absl::Time begin = BeginOf(event, part);
    trace_.Add({event.lane(), part.names(event.name()), begin,
                begin + absl::Microseconds(event.duration_us()), event.step(),
                event.bytes()});
    if (event.part() == 0) return;
    const ChromeTrace::Place place = {next_process_, event.lane(), begin};
    // Those of ps tasks come first.
    if (IsOfPs(part)) {
      updates_.emplace(event.part(), place);
    } else if (const auto update = updates_.find(event.part());
               update != updates_.end()) {
      trace_.AddArrow(event.part(), place, update->second);
      updates_.erase(update);
    }
  }

  ChromeTrace trace_;
  int64_t next_process_ = 0;
  // Without a push yet.
  absl::flat_hash_map<uint64_t, ChromeTrace::Place> updates_;
};

}  // namespace

std::string MergeProfile(std::vector<ProfilePart> parts,
                         const std::vector<std::string>& missing) {
  std::sort(parts.begin(), parts.end(), &StandsBefore);
  Merge merge;
  for (const ProfilePart& part : parts) merge.Add(part);
  for (const std::string& task : missing) merge.AddMissing(task);
  return merge.Json();
}

int64_t WorstClockError(const std::vector<ProfilePart>& parts) {
  // Each is wrong by that against ps task 0.
  int64_t worst = 0;
  int64_t second = 0;
  for (const ProfilePart& part : parts) {
    const int64_t error = std::clamp<int64_t>(part.error_us(), 0, kLatest);
    if (error > worst) {
      second = std::exchange(worst, error);
    } else {
      second = std::max(second, error);
    }
  }
  return worst + second;
}

}  // namespace muster
