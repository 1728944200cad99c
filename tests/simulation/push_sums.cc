#include "tests/simulation/push_sums.h"

#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/simulation/sim_model.h"

namespace muster {

int64_t PushSums::Sent(uint64_t incarnation, int64_t step) {
  const auto sent = sent_.insert({incarnation, step}).first;
  if (sent == sent_.begin()) return 0;
  const auto before = std::prev(sent);
  const bool is_open =
      before->first == incarnation && acknowledged_.count(*before) == 0;
  return is_open ? before->second : 0;
}

std::vector<int64_t> PushSums::OpenValues() const {
  std::vector<int64_t> values;
  for (const auto& [incarnation, step] : sent_) {
    if (acknowledged_.count({incarnation, step}) > 0) continue;
    values.push_back(SimModel::PushValue(incarnation, step));
  }
  return values;
}

int64_t PushSums::AcknowledgedSum() const {
  int64_t sum = 0;
  for (const auto& [incarnation, step] : acknowledged_) {
    sum += SimModel::PushValue(incarnation, step);
  }
  return sum;
}

bool PushSums::Explains(int64_t sum) const {
  const int64_t rest = sum - AcknowledgedSum();
  // The sums of some of the open ones: few are open at a time.
  std::set<int64_t> sums = {0};
  for (const int64_t value : OpenValues()) {
    if (sums.count(rest) > 0) return true;
    const std::set<int64_t> without = sums;
    for (const int64_t one : without) {
      if (one + value <= rest) sums.insert(one + value);
    }
  }
  return sums.count(rest) > 0;
}

PushSums::Steps PushSums::Applied(int64_t sum) const {
  std::map<int64_t, Steps> sums = {{0, {}}};
  for (const auto& step : sent_) {
    if (acknowledged_.count(step) > 0) continue;
    const int64_t value = SimModel::PushValue(step.first, step.second);
    for (const auto& [one, steps] : std::map<int64_t, Steps>(sums)) {
      const auto [with, is_new] = sums.try_emplace(one + value, steps);
      if (is_new) with->second.insert(step);
    }
  }
  Steps applied = sums[sum - AcknowledgedSum()];
  applied.insert(acknowledged_.begin(), acknowledged_.end());
  return applied;
}

std::string PushSums::Describe() const {
  return absl::StrCat(acknowledged_.size(), " were acknowledged, which makes ",
                      AcknowledgedSum(), ", others were sent with ",
                      absl::StrJoin(OpenValues(), ", "));
}

}  // namespace muster
