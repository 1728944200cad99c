#include "ps_server/coordinator/cut_log.h"

#include <map>

#include "ps_server/caller/task_name.h"

namespace muster {

void CutLog::Begin() {
  has_begun_ = true;
  steps_.clear();
}

void CutLog::Clear() { *this = CutLog(); }

void CutLog::Add(const std::vector<Delivery>& steps) {
  if (!has_begun_) return;
  for (const Delivery& step : steps) {
    steps_.push_back({step.sender, step.step, step.rows});
  }
  if (steps_.size() > kMaxSteps) Clear();
}

std::vector<RowLease> CutLog::RowsBehind(
    const google::protobuf::RepeatedPtrField<HeldStep>& counted) const {
  std::map<TaskKey, const HeldStep*> held;
  for (const HeldStep& step : counted) held[KeyOf(step.sender())] = &step;
  std::vector<RowLease> rows;
  for (const Step& step : steps_) {
    const auto it = held.find(KeyOf(step.sender));
    // All cuts know a later start of the task: they were made after this one
    // was fenced, and had reported.
    const bool is_held =
        it != held.end() &&
        (it->second->sender().incarnation() != step.sender.incarnation() ||
         step.step <= it->second->step());
    if (!is_held) rows.push_back(step.rows);
  }
  return rows;
}

}  // namespace muster
