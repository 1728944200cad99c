// The part of Coordinator that decides what it takes: whose training is the
// job's, and which tasks, workers of a manifest and model epochs are too many
// or too large.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/coordinator/coordinator.h"
#include "ps_server/coordinator/text_difference.h"

namespace muster {
namespace {

// The most that a commit may say of one worker: several times what there is.
constexpr size_t kMaxWorkerBytes = 1024;

}  // namespace

bool Coordinator::IsChief(const RegisterRequest& request) const {
  return request.chief() && listed_.MayBeChief(KeyOf(request.sender()));
}

// Only the chief replaces a chief's, and nobody does while others train.
bool Coordinator::MayBringTraining(const RegisterRequest& request) const {
  if (IsChief(request) && !training_is_chiefs_) return true;
  return !AnotherIsLive(KeyOf(request.sender())) &&
         (IsChief(request) || !training_is_chiefs_);
}

absl::Status Coordinator::CheckTraining(const RegisterRequest& request) const {
  if (training_owner_.first.empty() ||
      request.training_fingerprint() == training_fingerprint_) {
    return absl::OkStatus();
  }
  const std::string what =
      absl::StrCat("register ", TaskName(request.sender()), ": ");
  const std::string difference =
      FirstDifference(training_text_, request.training_text());
  if (phase_ == DONE) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, "the job of this ps is done (", stop_reason_, ", at step ",
        budget_.steps(), "), and its training differs from that: ", difference,
        "; a ps serves one job: start the ps tasks anew for another"));
  }
  if (MayBringTraining(request)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, "its training differs from that of ", TaskName(training_owner_),
      ": ", difference, "; start all tasks with one training file"));
}

void Coordinator::Expel(CoordinatorWorker& worker) {
  const TaskKey key = KeyOf(worker.sender);
  ReturnGrant(worker);
  gate_->Forget(key);
  AnswerOlderStep(key);
  worker.Expel();
}

void Coordinator::AdoptTraining(const RegisterRequest& request) {
  const TaskKey key = KeyOf(request.sender());
  const bool is_new = request.training_fingerprint() != training_fingerprint_;
  if (!is_new && !training_owner_.first.empty() &&
      (training_is_chiefs_ || !IsChief(request))) {
    return;
  }
  // They hear of the difference when they register again.
  for (auto& [other, worker] : workers_) {
    if (!is_new || other == key || !worker.registered) continue;
    Say(absl::StrCat(TaskName(other), " came with another training than ",
                     TaskName(key), ": it has to register again"));
    Expel(worker);
  }
  training_owner_ = key;
  training_is_chiefs_ = IsChief(request);
  training_fingerprint_ = request.training_fingerprint();
  training_text_ = request.training_text();
}

bool Coordinator::HasRoomFor(const TaskKey& key) const {
  if (workers_.count(key) > 0 || listed_.Contains(key)) return true;
  const auto unlisted = std::count_if(
      workers_.begin(), workers_.end(), [this](const auto& entry) {
        return entry.second.sender.incarnation() != 0 &&
               !listed_.Contains(entry.first);
      });
  return static_cast<size_t>(unlisted) < options_.max_unlisted_tasks;
}

absl::Status Coordinator::CheckRestoredTasks(
    const CommitEpochRequest& request) const {
  std::set<TaskKey> tasks;
  for (const WorkerState& worker : request.workers()) {
    const std::string name = TaskName(worker.sender());
    const std::string& job = worker.sender().task().job();
    if ((job != "worker" && job != "chief") ||
        worker.sender().task().index() < 0 ||
        worker.ByteSizeLong() > kMaxWorkerBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "commit epoch: worker ", name, " of ", worker.ByteSizeLong(),
          " bytes; wanted a task of job worker or chief, of at most ",
          kMaxWorkerBytes, "; is the manifest damaged?"));
    }
    if (!tasks.insert(KeyOf(worker.sender())).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("commit epoch: worker ", name,
                       " comes twice; is the manifest damaged?"));
    }
  }
  return absl::OkStatus();
}

// An epoch that is far ahead may be one message's doing, and would stay for
// good: it goes into the manifests.
absl::Status Coordinator::CheckSeenEpoch(int64_t seen) const {
  const int64_t known = std::max(announced_epoch_, committed_epoch_);
  if (IsCount(seen) && seen <= known + 2 * kMaxEpochJump) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("begin epoch: seen epoch ", seen,
                   " is no count of restores: ps task 0 knows ", known,
                   "; start the ps tasks anew that hold such a model"));
}

}  // namespace muster
