#include "ps_server/coordinator/attendance.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace muster {

void Attendance::Start(const CommitEpochRequest& commit,
                       absl::Time assembled_at) {
  assembled_at_ = assembled_at;
  batch_size_ = commit.batch_size();
  absent_.clear();
  update_.Clear();
  if (!commit.replication().has_sync()) return;
  const SyncReplication& sync = commit.replication().sync();
  update_.set_full_workers(sync.replicas_to_aggregate());
  update_.set_total_workers(sync.total_replicas());
  update_.set_workers(update_.full_workers());
  update_.set_rows(update_.workers() * batch_size_);
}

std::vector<std::string> Attendance::Look(const std::set<TaskKey>& registered,
                                          int64_t gradients, absl::Time now) {
  std::vector<std::string> lines;
  for (auto it = absent_.begin(); it != absent_.end();) {
    const bool has_come = registered.count(*it) != 0;
    if (has_come) lines.push_back(absl::StrCat(TaskName(*it), " has come"));
    it = has_come ? absent_.erase(it) : std::next(it);
  }
  if (now >= assembled_at_) {
    assembled_at_ = absl::InfiniteFuture();
    lines.push_back(SayAbsent(registered));
    if (lines.back().empty()) lines.pop_back();
  }
  if (gradients > 0 && gradients != update_.workers()) {
    lines.push_back(SayUpdate(gradients));
  }
  return lines;
}

std::string Attendance::SayAbsent(const std::set<TaskKey>& registered) {
  for (const TaskKey& task : listed_) {
    if (registered.count(task) == 0) absent_.insert(task);
  }
  if (absent_.empty()) return "";
  return absl::StrCat(TaskNames({absent_.begin(), absent_.end()}),
                      absent_.size() == 1 ? " has" : " have", " not come");
}

std::string Attendance::SayUpdate(int64_t gradients) {
  update_.set_workers(gradients);
  update_.set_rows(gradients * batch_size_);
  const std::string update = absl::StrCat("an update has ", update_.rows(),
                                          " rows, of ", update_.workers());
  return update_.total_workers() == 0
             ? absl::StrCat(update, " workers, which are those that are there")
             : absl::StrCat("the training goes on: ", update, " of ",
                            update_.total_workers(), " workers");
}

}  // namespace muster
