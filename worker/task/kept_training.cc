#include "worker/task/kept_training.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

namespace muster {

std::string KeptTrainingPath(absl::string_view train_dir) {
  return absl::StrCat(train_dir, "/kept_training.textproto");
}

KeptTraining::KeptTraining(Options options) : options_(std::move(options)) {}

absl::Status KeptTraining::AfterEnter(const EpochRecord& epoch) {
  static_cast<void>(epoch);
  if (is_written_) return absl::OkStatus();
  std::string text;
  google::protobuf::TextFormat::PrintToString(options_.training, &text);
  const absl::Status status =
      options_.write_file(KeptTrainingPath(options_.train_dir), text);
  is_written_ = status.ok();
  if (!status.ok()) {
    options_.reporter.Warning(absl::StrCat(
        "the training is not kept beside its checkpoints: ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace muster
