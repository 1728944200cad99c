#include "worker/task/kept_training.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "google/protobuf/text_format.h"
#include "worker/checkpoint/schema_text.h"
#include "worker/client/call_status.h"
#include "worker/training/training_spec.h"

namespace muster {
namespace {

constexpr absl::string_view kFirstLine =
    "# The training of a Muster run; changes are for --set or --training.\n";
// The layers of blocks stand in it one by one.
constexpr int64_t kMaxBytes = int64_t{1} << 26;
constexpr char kAdvice[] = "give the training as --training=FILE";

// Where runs kept it that wrote manifests of format 4, without a CRC.
std::string OlderPath(absl::string_view train_dir) {
  return absl::StrCat(train_dir, "/kept_training.textproto");
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return OfFile(absl::DataLossError(
      absl::StrCat("'", path, "', which keeps the training of the run, ", what,
                   "; move it away and ", kAdvice)));
}

absl::Status CheckAsWritten(const std::string& path, absl::string_view text) {
  if (!absl::StartsWith(text, kFirstLine)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path,
        "' is no file that a training wrote, and the name is kept for one: "
        "move it away and ",
        kAdvice));
  }
  if (CrcLineFits(text)) return absl::OkStatus();
  return Damaged(path,
                 "was cut short or edited: the CRC in its last line does not "
                 "fit");
}

// Without the training parsed.
absl::StatusOr<FoundTraining> FindText(const std::string& train_dir) {
  FoundTraining found;
  found.path = KeptTrainingPath(train_dir);
  absl::StatusOr<std::string> text = ReadFile(found.path, kMaxBytes);
  if (text.ok()) {
    RETURN_IF_ERROR(CheckAsWritten(found.path, *text));
  } else {
    if (!absl::IsNotFound(text.status())) return text.status();
    const absl::Status not_found = text.status();
    found.path = OlderPath(train_dir);
    text = ReadFile(found.path, kMaxBytes);
    // The file of today is the one to name.
    if (absl::IsNotFound(text.status())) return not_found;
    RETURN_IF_ERROR(text.status());
  }
  found.text = *std::move(text);
  return found;
}

}  // namespace

std::string KeptTrainingPath(absl::string_view train_dir) {
  return absl::StrCat(train_dir, "/training.textproto");
}

std::string KeptTrainingText(const TrainingSpec& training) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(training, &text);
  return WithCrcLine(absl::StrCat(kFirstLine, text));
}

absl::StatusOr<FoundTraining> ReadKeptTraining(const std::string& train_dir) {
  ASSIGN_OR_RETURN(FoundTraining found, FindText(train_dir));
  absl::StatusOr<TrainingSpec> parsed =
      ParseTrainingSpec(found.text, found.path, /*overrides=*/{});
  if (!parsed.ok()) {
    return Damaged(found.path, absl::StrCat("is no training to this program (",
                                            parsed.status().message(), ")"));
  }
  found.training = *std::move(parsed);
  return found;
}

absl::Status CheckCanKeepTraining(const std::string& train_dir) {
  const std::string path = KeptTrainingPath(train_dir);
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  RETURN_IF_ERROR(text.status());
  return CheckAsWritten(path, *text);
}

KeptTraining::KeptTraining(Options options) : options_(std::move(options)) {}

absl::Status KeptTraining::AfterEnter(const EpochRecord& epoch) {
  static_cast<void>(epoch);
  if (is_written_) return absl::OkStatus();
  const absl::Status status = Write();
  is_written_ = status.ok();
  if (!status.ok()) {
    options_.reporter.Warning(absl::StrCat(
        "the training is not kept beside its checkpoints: ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status KeptTraining::Write() const {
  RETURN_IF_ERROR(options_.write_file(SchemaPath(options_.train_dir),
                                      FormatSchema(options_.schema)));
  return options_.write_file(KeptTrainingPath(options_.train_dir),
                             KeptTrainingText(options_.training));
}

}  // namespace muster
