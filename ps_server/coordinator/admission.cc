#include "ps_server/coordinator/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "common/rpc/training_text.h"
#include "ps_server/caller/takeover_token.h"
#include "ps_server/coordinator/text_difference.h"

namespace muster {
namespace {

// Two starts of ps task 0 may give one index to two workers. Who is there
// first keeps it.
absl::Status CheckIndex(const RegisterRequest& request,
                        const Members& members) {
  const Sender& sender = request.sender();
  const CoordinatorWorker* const known = members.Find(KeyOf(sender));
  if (!request.is_numbered() || known == nullptr || !known->IsThere() ||
      known->sender.incarnation() == sender.incarnation()) {
    return absl::OkStatus();
  }
  return FencedError(
      absl::StrCat("register ", TaskName(sender),
                   ": another worker was given this index, too, and is there; "
                   "ask for another one"),
      ErrorReason::kReplaced);
}

}  // namespace

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
  RETURN_IF_ERROR(CheckIndex(request, members));
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

Admission::Comparison Admission::Compare(const RegisterRequest& request) const {
  if (trainings_.empty()) return {};
  const TrainingText given = SplitTrainingText(request.training_text());
  const auto same = trainings_.find(given.kind);
  if (same != trainings_.end()) {
    const Training& known = same->second;
    if (request.training_fingerprint() == known.fingerprint) return {};
    return {known.owner, FirstDifference(known.text, request.training_text())};
  }
  const Training& other = trainings_.begin()->second;
  const std::string shared = SplitTrainingText(other.text).shared;
  if (shared == given.shared) return {};
  return {other.owner, FirstDifference(shared, given.shared),
          /*is_of_kind=*/false};
}

bool Admission::IsTrainingChiefs() const {
  return std::any_of(trainings_.begin(), trainings_.end(),
                     [](const auto& entry) { return entry.second.is_chiefs; });
}

// Only the chief replaces a chief's, and nobody does while others train.
bool Admission::MayBringTraining(const RegisterRequest& request,
                                 const Members& members) const {
  if (IsChief(request) && !IsTrainingChiefs()) return true;
  return !members.IsAnotherThere(KeyOf(request.sender())) &&
         (IsChief(request) || !IsTrainingChiefs());
}

absl::Status Admission::CheckTraining(const RegisterRequest& request,
                                      const Members& members,
                                      const std::string& end) const {
  const Comparison found = Compare(request);
  if (found.difference.empty() ||
      (end.empty() && MayBringTraining(request, members))) {
    return absl::OkStatus();
  }
  const std::string what =
      absl::StrCat("register ", TaskName(request.sender()), ": ");
  if (!end.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, "the job of this ps is done (", end,
        "), and its training differs from that: ", found.difference,
        "; a namespace has one job: give this one another --namespace, reset "
        "that one (musterctl namespace reset), or start the ps tasks anew for "
        "another"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, "its training differs from that of ", TaskName(found.owner), ": ",
      found.difference,
      found.is_of_kind
          ? "; start all tasks with one training file and the same data"
          : "; a program and a model of layers in one job have "
            "tensors, rule, replication, placement and rows alike"));
}

std::string Admission::DifferenceTo(const RegisterRequest& request) const {
  return Compare(request).difference;
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
  const Comparison found = Compare(request);
  const bool is_new = trainings_.empty() || !found.difference.empty();
  const TrainingText given = SplitTrainingText(request.training_text());
  const auto shares = [&given](const auto& entry) {
    return SplitTrainingText(entry.second.text).shared == given.shared;
  };
  if (!std::all_of(trainings_.begin(), trainings_.end(), shares)) {
    trainings_.clear();
  }
  Training& own = trainings_[given.kind];
  const bool is_chief = IsChief(request);
  if (is_new || own.owner.first.empty() || (is_chief && !own.is_chiefs)) {
    own = {KeyOf(request.sender()), request.training_fingerprint(),
           request.training_text(), is_chief};
  }
  return is_new;
}

}  // namespace muster
