#include "worker/checkpoint/settled_evaluations.h"

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"

namespace muster {

EvaluationHistory SettleEvaluations(FileSystem* file_system,
                                    const std::string& train_dir,
                                    int64_t model_epoch,
                                    EvaluationHistory known,
                                    const Reporter& reporter) {
  const absl::StatusOr<std::optional<CheckpointManifest>> newest =
      FindNewestManifest(file_system, train_dir);
  if (newest.ok() && newest->has_value() &&
      (*newest)->model_epoch() == model_epoch &&
      (*newest)->evaluations().global_step() >= known.global_step()) {
    known = (*newest)->evaluations();
  }
  if (!known.has_kept()) return known;
  const std::string path =
      absl::StrCat(train_dir, "/", CheckpointName(known.kept().best_step()));
  const absl::Status found = ReadManifestFile(file_system, path).status();
  if (found.ok()) return known;
  reporter.Warning(absl::StrCat(
      "the best checkpoint, '", path,
      "', cannot be read: the next one that is evaluated takes its place: ",
      found.message()));
  known.clear_kept();
  return known;
}

}  // namespace muster
