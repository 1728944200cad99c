#include "worker/task/shared_training.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/text_format.h"
#include "worker/task/worker_options.h"
#include "worker/training/training_spec.h"

namespace muster {
namespace {

// Rule, replication and placement.
std::string SpecLines(const TrainingSpec& training) {
  const TrainingSpec semantic = SemanticPart(training);
  TrainingSpec shared;
  *shared.mutable_optimizer() = semantic.optimizer();
  *shared.mutable_replication() = semantic.replication();
  *shared.mutable_placement() = semantic.placement();
  std::string text;
  google::protobuf::TextFormat::PrintToString(shared, &text);
  return text;
}

std::string TensorLine(const TensorDef& tensor) {
  std::string line = absl::StrCat("tensor: \"", tensor.name(), "\" [",
                                  absl::StrJoin(tensor.shape(), ","), "]");
  if (tensor.kind() != TRAINABLE) {
    absl::StrAppend(&line, " ",
                    absl::AsciiStrToLower(TensorKind_Name(tensor.kind())));
  }
  if (tensor.decay() != 0) absl::StrAppend(&line, " decay ", tensor.decay());
  return line + "\n";
}

std::string TableLine(const TableDef& table) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(table, &text);
  return absl::StrCat("table: ", absl::StripAsciiWhitespace(text), "\n");
}

}  // namespace

std::string DescribeRowOrder(int64_t epoch_rows, bool shuffled, int64_t seed) {
  return absl::StrCat(
      epoch_rows, " an epoch, ",
      shuffled ? absl::StrCat("shuffled by seed ", seed) : "in order");
}

std::string SharedTrainingText(const PlacedTraining& placed,
                               const BatchPlan& shape, absl::string_view rows) {
  const TrainingSpec& training = placed.training();
  std::string text = SpecLines(training);
  if (placed.options().cluster.is_all_reduce()) {
    text += "replication: all_reduce\n";
  }
  for (const TensorDef& tensor : placed.model().tensors) {
    text += TensorLine(tensor);
  }
  for (const TableDef& table : placed.model().tables) text += TableLine(table);
  absl::StrAppend(&text, "rows: ", rows, "\n");
  if (training.replication().has_sync() ||
      training.replication().has_all_reduce()) {
    absl::StrAppend(&text, "rows of a step: ", shape.worker_rows(), "\n");
  }
  return text;
}

}  // namespace muster
