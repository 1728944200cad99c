#include "ps_server/coordinator/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/takeover_token.h"
#include "ps_server/coordinator/text_difference.h"

namespace muster {

bool Admission::IsChief(const RegisterRequest& request) const {
  return request.chief() && listed_.MayBeChief(KeyOf(request.sender()));
}

absl::Status Admission::CheckProtocol(absl::string_view what,
                                      int32_t protocol_version) {
  if (protocol_version == kProtocolVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, ": it speaks protocol ", protocol_version, ", this ps speaks ",
      kProtocolVersion, "; ", kOtherProtocolAdvice));
}

absl::Status Admission::CheckAsksForTask(const AssignTaskRequest& request,
                                         const ClusterDef& cluster) {
  constexpr absl::string_view kWhat = "assign a task";
  RETURN_IF_ERROR(CheckProtocol(kWhat, request.protocol_version()));
  if (request.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kWhat, ": wanted an incarnation"));
  }
  const bool lists_workers = std::any_of(
      cluster.job().begin(), cluster.job().end(), [](const JobDef& job) {
        return job.name() == kWorkerJob && !job.tasks().empty();
      });
  if (!lists_workers) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      kWhat, ": the cluster lists its workers: start with --task_index=N"));
}

absl::Status Admission::Check(const RegisterRequest& request,
                              Members& members) const {
  const Sender& sender = request.sender();
  const TaskKey key = KeyOf(sender);
  const std::string what = absl::StrCat("register ", TaskName(key));
  RETURN_IF_ERROR(CheckProtocol(what, request.protocol_version()));
  if (!IsTrainingJob(key.first) || key.second < 0 ||
      sender.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what,
                     ": wanted a task of job worker or chief with an "
                     "incarnation"));
  }
  RETURN_IF_ERROR(listed_.Check(what, key));
  const CoordinatorWorker* const known = members.Find(key);
  if (known != nullptr && known->IsRetired(sender.incarnation())) {
    return members.FindSender("register", sender).status();
  }
  if (HasRoomFor(key, members)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, ": this job has ", max_unlisted_,
                   " tasks already that its cluster does not list"));
}

bool Admission::HasRoomFor(const TaskKey& key, const Members& members) const {
  if (members.size() < max_unlisted_ || members.Find(key) != nullptr ||
      listed_.Contains(key)) {
    return true;
  }
  const auto unlisted =
      std::count_if(members.begin(), members.end(), [this](const auto& entry) {
        return entry.second.sender.incarnation() != 0 &&
               !listed_.Contains(entry.first);
      });
  return static_cast<size_t>(unlisted) < max_unlisted_;
}

// Only the chief replaces a chief's, and nobody does while others train.
bool Admission::MayBringTraining(const RegisterRequest& request,
                                 const Members& members) const {
  if (IsChief(request) && !training_is_chiefs_) return true;
  return !members.IsAnotherThere(KeyOf(request.sender())) &&
         (IsChief(request) || !training_is_chiefs_);
}

absl::Status Admission::CheckTraining(const RegisterRequest& request,
                                      const Members& members,
                                      const std::string& end) const {
  if (training_owner_.first.empty() ||
      request.training_fingerprint() == training_fingerprint_ ||
      (end.empty() && MayBringTraining(request, members))) {
    return absl::OkStatus();
  }
  const std::string what =
      absl::StrCat("register ", TaskName(request.sender()), ": ");
  const std::string difference =
      FirstDifference(training_text_, request.training_text());
  if (!end.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, "the job of this ps is done (", end,
        "), and its training differs from that: ", difference,
        "; a namespace has one job: give this one another --namespace, reset "
        "that one (musterctl namespace reset), or start the ps tasks anew for "
        "another"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, "its training differs from that of ", TaskName(training_owner_),
      ": ", difference, "; start all tasks with one training file"));
}

std::string Admission::DifferenceTo(const RegisterRequest& request) const {
  if (training_owner_.first.empty() ||
      request.training_fingerprint() == training_fingerprint_) {
    return "";
  }
  return FirstDifference(training_text_, request.training_text());
}

uint64_t Admission::WantedTakeover(const RegisterRequest& request,
                                   const Members& members) {
  const uint64_t incarnation = request.sender().incarnation();
  const CoordinatorWorker* const known = members.Find(KeyOf(request.sender()));
  if (known == nullptr || !known->registered) return 0;
  const uint64_t current = known->sender.incarnation();
  if (current == incarnation) return 0;
  const uint64_t wanted =
      TakeoverToken(current, incarnation, known->num_retired);
  return request.takeover() == wanted ? 0 : wanted;
}

bool Admission::AdoptTraining(const RegisterRequest& request) {
  const bool is_new = request.training_fingerprint() != training_fingerprint_;
  if (!is_new && !training_owner_.first.empty() &&
      (training_is_chiefs_ || !IsChief(request))) {
    return false;
  }
  training_owner_ = KeyOf(request.sender());
  training_is_chiefs_ = IsChief(request);
  training_fingerprint_ = request.training_fingerprint();
  training_text_ = request.training_text();
  return is_new;
}

}  // namespace muster
