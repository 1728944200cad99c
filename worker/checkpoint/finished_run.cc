#include "worker/checkpoint/finished_run.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/checkpoint/train_dir.h"
#include "common/config/text_format.h"
#include "google/protobuf/text_format.h"

namespace muster {
namespace {

std::optional<FinishedRun> ReadFinishedRun(absl::string_view folder) {
  const std::string path = FinishedRunPath(folder);
  const absl::StatusOr<std::string> text = ReadFile(path);
  FinishedRun run;
  if (!text.ok() || !ParseTextProto(*text, path, &run).ok() ||
      !IsStopCondition(run.stop_reason())) {
    return std::nullopt;
  }
  return run;
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
  const std::optional<FinishedRun> run = ReadFinishedRun(
      absl::StrCat(wanted.train_dir, "/", CheckpointName(steps->front())));
  const bool is_wanted =
      run.has_value() &&
      run->training_fingerprint() == wanted.training_fingerprint &&
      run->namespace_() == wanted.job_namespace &&
      HasReached(*run, wanted.goal);
  return is_wanted ? run : std::nullopt;
}

std::string ReachedByChief(absl::string_view folder, const JobGoal& goal) {
  const std::optional<FinishedRun> run = ReadFinishedRun(folder);
  const bool is_reached = run.has_value() && run->stop_reason() != "steps" &&
                          run->stop_reason() != "epochs" &&
                          HasReached(*run, goal);
  return is_reached ? run->stop_reason() : "";
}

}  // namespace muster
