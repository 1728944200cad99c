#include "worker/checkpoint/finished_run.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/train_dir.h"
#include "common/config/text_format.h"
#include "google/protobuf/text_format.h"

namespace muster {
namespace {

// Errors: NotFound where the run did not end.
absl::StatusOr<FinishedRun> ReadFinishedRun(absl::string_view folder) {
  const std::string path = FinishedRunPath(folder);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  FinishedRun run;
  RETURN_IF_ERROR(ParseTextProto(text, path, &run));
  if (IsStopCondition(run.stop_reason())) return run;
  return absl::DataLossError(
      absl::StrCat(path, ": found no stop condition as its stop_reason"));
}

bool HasReached(const FinishedRun& run, const JobGoal& goal) {
  JobState end;
  end.set_global_step(run.global_step());
  end.set_stop_reason(run.stop_reason());
  *end.mutable_stop() = run.stop();
  return IsReached(goal, end);
}

}  // namespace

std::string FinishedRunPath(absl::string_view folder) {
  return absl::StrCat(folder, "/finished_run.textproto");
}

std::string FinishedRunText(const FinishedRun& run) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(run, &text);
  return text;
}

std::optional<FinishedRun> FindFinishedRun(FileSystem* file_system,
                                           const WantedRun& wanted) {
  if (wanted.train_dir.empty()) return std::nullopt;
  const absl::StatusOr<std::vector<int64_t>> steps =
      ListCheckpoints(file_system, wanted.train_dir);
  const std::string result = absl::StrCat(wanted.train_dir, "/result.json");
  if (!steps.ok() || steps->empty() || !ReadFile(result).ok()) {
    return std::nullopt;
  }
  const absl::StatusOr<FinishedRun> run = ReadFinishedRun(
      absl::StrCat(wanted.train_dir, "/", CheckpointName(steps->front())));
  const bool is_wanted =
      run.ok() && run->training_fingerprint() == wanted.training_fingerprint &&
      run->namespace_() == wanted.job_namespace &&
      HasReached(*run, wanted.goal);
  return is_wanted ? std::make_optional(*run) : std::nullopt;
}

std::string ReachedByChief(absl::string_view folder, const JobGoal& goal,
                           const Reporter& reporter) {
  const absl::StatusOr<FinishedRun> run = ReadFinishedRun(folder);
  if (!run.ok() && !absl::IsNotFound(run.status())) {
    reporter.Warning(absl::StrCat("whether the run had ended is not known: ",
                                  run.status().message()));
  }
  const bool is_reached = run.ok() && run->stop_reason() != "steps" &&
                          run->stop_reason() != "epochs" &&
                          HasReached(*run, goal);
  return is_reached ? run->stop_reason() : "";
}

}  // namespace muster
