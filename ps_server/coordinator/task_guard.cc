#include "ps_server/coordinator/task_guard.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "common/config/namespace_name.h"

namespace muster {

absl::Status TaskGuard::Check(const RegisterRequest& request, absl::Time now) {
  const TaskKey key = KeyOf(request.sender());
  const uint64_t asker = request.sender().incarnation();
  const CoordinatorWorker* const known = job_.members().Find(key);
  if (!job_.options().guards_tasks || known == nullptr || !known->IsThere() ||
      known->sender.incarnation() == asker) {
    return absl::OkStatus();
  }
  std::string why = admission_.DifferenceTo(request);
  if (!why.empty() && now < known->last_heard + kChiefSilence) {
    why = absl::StrCat("and its training differs: ", why);
  } else {
    const absl::Status replaceable = CheckReplaceable(*known, asker, now);
    if (!absl::IsInvalidArgument(replaceable)) return replaceable;
    why = std::string(replaceable.message());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "register ", TaskName(key), ": another job has ",
      QuotedNamespace(request.sender().namespace_()), ", whose ", TaskName(key),
      " trains, ", why, "; give this job another --namespace"));
}

absl::Status TaskGuard::CheckReplaceable(const CoordinatorWorker& holder,
                                         uint64_t asker, absl::Time now) {
  if (questions_.Find(asker) == nullptr) {
    job_.RaiseVersion(TakeoverQuestions::VersionsOf(asker));
    questions_.Ask({asker, job_.version(), now});
  }
  const TakeoverQuestions::Question& question = *questions_.Find(asker);
  if (holder.watched_version >= question.version) {
    return absl::InvalidArgumentError(
        absl::StrCat("and is alive (incarnation ",
                     absl::Hex(holder.sender.incarnation()), ")"));
  }
  if (now >= question.since + TakeoverQuestions::kAnswerTime) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("register ", TaskName(holder.sender),
                   ": another start of it is asked whether it is alive"));
}

}  // namespace muster
