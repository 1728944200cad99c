#include "worker/task/run_data.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/say_remarks.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

void SayRemarks(const DataSchema& run, const DataSchema& now,
                const Reporter& reporter) {
  for (const std::string& remark : SchemaRemarks(run, now)) {
    reporter.Info(remark);
  }
}

google::protobuf::RepeatedPtrField<std::string> ColumnNames(
    const DataSchema& schema) {
  google::protobuf::RepeatedPtrField<std::string> names;
  for (const DataColumn& column : schema.column()) {
    *names.Add() = column.name();
  }
  return names;
}

std::string TextWithoutRows(DataSchema schema) {
  schema.clear_training();
  schema.clear_test();
  schema.clear_validation();
  return schema.SerializeAsString();
}

}  // namespace

absl::StatusOr<RunSchema> FindRunSchema(const std::string& train_dir,
                                        const Reporter& reporter) {
  PosixFileSystem file_system;
  ASSIGN_OR_RETURN(RunSchema run, ReadRunSchema(&file_system, train_dir));
  if (!run.note.empty()) reporter.Info(run.note);
  return run;
}

std::string RunFolder(const std::string& train_dir,
                      const std::string& init_from) {
  if (!train_dir.empty() || init_from.empty()) return train_dir;
  std::filesystem::path path = init_from;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) path = path.parent_path();
  if (!path.has_filename()) path = path.parent_path();
  if (ParseCheckpointName(path.filename().string()).has_value()) {
    path = path.parent_path();
  }
  return path.empty() ? "." : path.string();
}

void MakeDirAbsolute(InputSpec* input) {
  std::error_code error;
  const auto path = std::filesystem::absolute(input->dir(), error);
  if (!input->dir().empty() && !error) input->set_dir(path.string());
}

bool IsSameData(const DataSchema& a, const DataSchema& b) {
  return TextWithoutRows(a) == TextWithoutRows(b);
}

absl::Status CheckRunTraining(const DataSchema& run,
                              const TrainingSpec& training) {
  return CheckSchemaChange(
      run, CompleteSchema(training.input(),
                          static_cast<uint64_t>(training.seed()), run));
}

std::vector<std::string> DescribeOtherSource(const DataSchema& source,
                                             const DataSchema& now,
                                             bool leaves_out) {
  std::vector<std::string> lines;
  const auto add = [&lines](absl::string_view what, const auto& was,
                            const auto& is, absl::string_view advice) {
    if (was.empty() || absl::c_equal(was, is)) return;
    lines.push_back(
        absl::StrCat("--init_from: its parameters were trained with the ", what,
                     " ", ShownNames(was), ", in this order; here they are ",
                     ShownNames(is), advice));
  };
  add("columns", ColumnNames(source), ColumnNames(now), "");
  if (source.label().kind() == now.label().kind()) {
    add("label columns", source.label().column(), now.label().column(), "");
  }
  if (!leaves_out) {
    add("classes", source.label().class_name(), now.label().class_name(),
        "; --init_from_map='LAYER/.*=' begins the last layer anew");
  }
  const absl::Status map = CheckMapChange(source, now);
  if (!map.ok()) {
    lines.push_back(absl::StrCat("--init_from: ", map.message()));
  }
  return lines;
}

absl::StatusOr<DataSchema> SettleSchema(const DataSchema* run, DataSchema now,
                                        const Reporter& reporter) {
  if (run == nullptr) return now;
  RETURN_IF_ERROR(CheckSchemaChange(*run, now));
  SayRemarks(*run, now, reporter);
  *now.mutable_column() = run->column();
  *now.mutable_label() = run->label();
  return now;
}

absl::StatusOr<std::unique_ptr<DataSet>> OpenHalf(
    const TrainingSpec& training, const CompiledModel& model,
    const UsedHalf& used, std::shared_ptr<const DataSchema> run,
    const ProgressOutput& output) {
  ASSIGN_OR_RETURN(std::unique_ptr<DataSet> half,
                   OpenDataSet(training, model, used.half, used.labels,
                               std::move(run), output));
  SayRemarks(absl::StrCat(HalfName(used.half), " data"), half->Remarks(),
             output.reporter);
  return half;
}

absl::StatusOr<std::unique_ptr<DataSet>> OpenHalfOfRun(
    const TrainingSpec& training, const CompiledModel& model,
    const UsedHalf& used, const std::shared_ptr<const DataSchema>& run,
    const ProgressOutput& output) {
  if (run != nullptr) RETURN_IF_ERROR(CheckRunTraining(*run, training));
  ASSIGN_OR_RETURN(std::unique_ptr<DataSet> half,
                   OpenHalf(training, model, used, run, output));
  DataSchema now = CompleteSchema(
      training.input(), static_cast<uint64_t>(training.seed()), half->Schema());
  const bool has_labels = used.labels != LabelKind::kNone;
  // The files of labels that nobody asks for were not looked for.
  RETURN_IF_ERROR(SettleSchema(run.get(), std::move(now),
                               has_labels ? output.reporter : Reporter())
                      .status());
  return half;
}

}  // namespace muster
