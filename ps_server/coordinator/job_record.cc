#include "ps_server/coordinator/job_record.h"

#include "absl/strings/str_cat.h"

namespace muster {

bool SameProcess(const Sender& a, const Sender& b) {
  return KeyOf(a) == KeyOf(b) && a.incarnation() == b.incarnation();
}

void JobRecord::SetPhase(JobPhase phase) {
  phase_ = phase;
  RaiseVersion();
}

void JobRecord::Stop(std::string reason) {
  stop_reason_ = std::move(reason);
  SetPhase(STOPPING);
}

const CoordinatorWorker* JobRecord::LiveChief() const {
  const CoordinatorWorker* const holder = members_.Find(KeyOf(chief_));
  const bool is_live = chief_.incarnation() != 0 && holder != nullptr &&
                       SameProcess(holder->sender, chief_) &&
                       holder->IsActive();
  return is_live ? holder : nullptr;
}

std::string JobRecord::DescribeEnd() const {
  return absl::StrCat(stop_reason_, ", at step ", budget_.steps());
}

void JobRecord::Say(std::string line) {
  if (lines_.size() < kMaxLines) lines_.push_back(std::move(line));
}

}  // namespace muster
