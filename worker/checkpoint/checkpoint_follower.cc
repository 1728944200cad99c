#include "worker/checkpoint/checkpoint_follower.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"
#include "common/process/exit_code.h"

namespace muster {

CheckpointFollower::CheckpointFollower(Options options)
    : options_(std::move(options)) {}

int CheckpointFollower::Run() {
  std::optional<StopReason> interrupted;
  while (!interrupted.has_value()) {
    // Asked before the look: the last checkpoint is there when the job is done.
    const std::optional<StopReason> job =
        options_.job->WaitFor(absl::ZeroDuration());
    if (job.has_value() && job->exit_code != kExitDone) {
      options_.reporter.Error(job->text);
      return job->exit_code;
    }
    Look();
    const absl::Status status = EvaluateWaiting();
    if (!status.ok() && !absl::IsCancelled(status)) {
      options_.reporter.Error(status.message());
      return absl::IsOutOfRange(status) ? kExitFailed : kExitBadCheckpoint;
    }
    if (job.has_value() && status.ok()) {
      options_.reporter.Info(absl::StrCat("ending: ", job->text, "; evaluated ",
                                          evaluated_, " checkpoints"));
      return kExitDone;
    }
    interrupted = options_.interrupted->WaitFor(options_.look_every);
  }
  options_.reporter.Info(absl::StrCat("ending: ", interrupted->text));
  return interrupted->exit_code;
}

void CheckpointFollower::Look() {
  const auto steps = ListCheckpoints(options_.file_system, options_.train_dir);
  if (!steps.ok() && !absl::IsNotFound(steps.status())) {
    return SayOnce(steps.status().message());
  }
  std::vector<FoundCheckpoint> found;
  for (const int64_t step : steps.value_or(std::vector<int64_t>())) {
    const auto manifest = ReadManifestFile(options_.file_system, PathOf(step));
    found.push_back({step, manifest.ok() ? manifest->manifest_crc32c() : 0});
  }
  if (found.empty()) {
    SayOnce(absl::StrCat("waiting for the first checkpoint in ",
                         options_.train_dir));
  }
  for (const int64_t step : queue_.Update(found)) {
    options_.reporter.Info(
        absl::StrCat(PathOf(step), " was removed before it was evaluated"));
  }
}

absl::Status CheckpointFollower::EvaluateWaiting() {
  while (const auto next = queue_.Next()) {
    RETURN_IF_ERROR(EvaluateOne(*next));
    // Checkpoints come and go during a long evaluation.
    Look();
  }
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> CheckpointFollower::Evaluate(
    const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   CheckpointReader::Open(options_.file_system, path));
  ASSIGN_OR_RETURN(const EvaluationResult result, options_.evaluate(*reader));
  options_.report(*reader, result);
  if (!options_.allow_non_finite) RETURN_IF_ERROR(CheckHasAnswers(result));
  return result;
}

absl::Status CheckpointFollower::EvaluateOne(
    const FoundCheckpoint& checkpoint) {
  const std::string path = PathOf(checkpoint.global_step);
  const auto result = Evaluate(path);
  if (absl::IsCancelled(result.status())) return result.status();
  queue_.Settle(checkpoint);
  if (result.ok()) {
    ++evaluated_;
    return absl::OkStatus();
  }
  if (absl::IsFailedPrecondition(result.status()) ||
      absl::IsOutOfRange(result.status())) {
    return Annotate(result.status(), absl::StrCat("evaluate ", path));
  }
  const bool gone =
      absl::IsNotFound(ReadManifestFile(options_.file_system, path).status());
  options_.reporter.Report(
      gone ? Reporter::kInfo : Reporter::kError,
      gone ? absl::StrCat(path, " was removed while it was evaluated")
           : absl::StrCat("cannot evaluate ", path, ": ",
                          result.status().message()));
  return absl::OkStatus();
}

void CheckpointFollower::SayOnce(absl::string_view text) {
  if (said_ == text) return;
  said_ = std::string(text);
  options_.reporter.Info(text);
}

std::string CheckpointFollower::PathOf(int64_t global_step) const {
  return absl::StrCat(options_.train_dir, "/", CheckpointName(global_step));
}

}  // namespace muster
