#include "ps_server/coordinator/job_end.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "ps_server/caller/task_name.h"

namespace muster {

bool JobEnd::EverybodyCame() const {
  return job_.members().Registered().size() >=
         static_cast<size_t>(std::max(0, job_.options().expected_tasks));
}

absl::Status JobEnd::ChangeStop(const CommitEpochRequest& commit,
                                absl::Time now) {
  if (job_.phase() != RUNNING ||
      commit.stop().SerializeAsString() == stop_.SerializeAsString()) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(job_.budget().ChangeStop(commit));
  job_.leases().SetLimit(job_.budget().row_limit());
  stop_ = commit.stop();
  job_.RaiseVersion();
  job_.Say(absl::StrCat(TaskName(commit.sender()),
                        " has other stop conditions than the job had: they "
                        "hold from step ",
                        job_.budget().steps(), " on"));
  Check(now);
  return absl::OkStatus();
}

void JobEnd::Check(absl::Time now) {
  if (job_.phase() == RUNNING) {
    std::string limit = steps_.ReachedLimit();
    if (!limit.empty()) job_.Stop(std::move(limit));
  }
  if (saves_.GivesUpLastSave(now)) return End(now);
  const bool is_waited_for =
      saves_.awaits_last_save() || job_.members().IsAnyWaitedFor();
  if (job_.phase() != STOPPING || is_waited_for) {
    idle_since_ = absl::InfiniteFuture();
    return;
  }
  idle_since_ = std::min(idle_since_, now);
  if (EverybodyCame() || now >= idle_since_ + job_.options().latecomer_wait) {
    End(now);
  }
}

void JobEnd::End(absl::Time now) {
  saves_.StopAwaitingChief();
  job_.SetPhase(DONE);
  steps_.End();
  const std::map<TaskKey, uint64_t> coming =
      numbers_.Coming(job_.members(), now);
  for (const auto& [key, incarnation] : coming) {
    listeners_.Expect(key, incarnation, now);
  }
  std::vector<TaskKey> lost;
  for (const auto& [key, worker] : job_.members()) {
    if (!worker.registered || worker.state != MemberState::kLost) continue;
    lost.push_back(key);
    listeners_.Expect(key, worker.sender.incarnation(), now);
  }
  listeners_.OnEnd(job_.version(), now);
  if (job_.options().may_go_on) return;
  std::vector<std::string> awaited;
  if (!lost.empty()) {
    awaited.push_back(
        absl::StrCat(TaskNames(lost), ", which may have stood still"));
  }
  if (!coming.empty()) {
    awaited.push_back(absl::StrCat(
        coming.size(),
        coming.size() == 1 ? " worker that is" : " workers that are",
        " on the way"));
  }
  if (awaited.empty()) return;
  job_.Say(absl::StrCat("the job is done; staying at most ",
                        absl::FormatDuration(listeners_.patience()), " for ",
                        absl::StrJoin(awaited, " and for "),
                        ", to learn of it"));
}

void JobEnd::Reopen() {
  listeners_.Reopen();
  saves_.StopAwaitingChief();
  idle_since_ = absl::InfiniteFuture();
}

void JobEnd::Tick(absl::Time now) {
  if (others_heard_ == absl::InfinitePast()) others_heard_ = now;
  listeners_.Tick(now);
  if (now >= AbsenceDeadline()) Abandon();
}

absl::Time JobEnd::NextDeadline() const {
  absl::Time deadline = std::min(listeners_.NextDeadline(), AbsenceDeadline());
  if (job_.phase() == STOPPING) {
    deadline = std::min(deadline, idle_since_ + job_.options().latecomer_wait);
  }
  // Otherwise the end waits for a step, too.
  if (!job_.members().IsAnyActive()) {
    deadline = std::min(deadline, saves_.LastSaveDeadline());
  }
  return deadline;
}

absl::Time JobEnd::AbsenceDeadline() const {
  const bool is_absent = job_.options().ends_without_workers &&
                         abandoned_.empty() &&
                         (job_.phase() == INITIAL || job_.phase() == RUNNING) &&
                         !job_.members().IsAnyWaitedFor();
  if (!is_absent) return absl::InfiniteFuture();
  return std::max(others_heard_, job_.members().LastWord()) +
         job_.options().max_wait;
}

void JobEnd::Abandon() {
  abandoned_ = absl::StrCat("nobody has trained here for ",
                            absl::FormatDuration(job_.options().max_wait),
                            " (--max_wait)");
  if (saves_.awaits_last_save()) {
    absl::StrAppend(&abandoned_, "; lost are ", saves_.DescribeUnsaved());
  }
  absl::StrAppend(&abandoned_,
                  "; start the ps tasks and the workers again, or give the ps "
                  "tasks a longer --max_wait or --keep_serving");
  job_.RaiseVersion();
}

}  // namespace muster
