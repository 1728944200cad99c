#include "ps_server/coordinator/cut_log.h"

#include "common/rows/row_ranges.h"

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

CutLog::NewestSteps CutLog::ByTask(const HeldSteps& steps) {
  NewestSteps newest;
  for (const HeldStep& step : steps) newest[KeyOf(step.sender())] = &step;
  return newest;
}

// A cut that knows a later start of the task was made after this one was
// fenced, and had reported.
bool CutLog::IsUpTo(const NewestSteps& newest, const Step& step) {
  const auto it = newest.find(KeyOf(step.sender));
  return it != newest.end() &&
         (it->second->sender().incarnation() != step.sender.incarnation() ||
          step.step <= it->second->step());
}

std::vector<RowLease> CutLog::RowsBehind(const HeldSteps& counted) const {
  const NewestSteps held = ByTask(counted);
  std::vector<RowLease> rows;
  for (const Step& step : steps_) {
    if (!IsUpTo(held, step)) rows.push_back(step.rows);
  }
  return rows;
}

std::map<TaskKey, CutLog::Repeated> CutLog::CountBegunBehind(
    const HeldSteps& counted, const HeldSteps& begun) const {
  const NewestSteps held = ByTask(counted);
  const NewestSteps newest = ByTask(begun);
  std::map<TaskKey, Repeated> repeated;
  for (const Step& step : steps_) {
    if (!IsUpTo(newest, step) || IsUpTo(held, step)) continue;
    Repeated& of_task = repeated[KeyOf(step.sender)];
    ++of_task.steps;
    of_task.rows += NumRows(step.rows);
  }
  return repeated;
}

}  // namespace muster
