#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/file_data_set.h"
#include "worker/input/data_set/find_part.h"
#include "worker/input/data_set/tf_example_row.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/file/tf_example.h"
#include "worker/input/file/tf_record_file.h"

namespace muster {
namespace {

// A thread's record and example: nothing is allocated from row to row.
struct Row {
  std::string record;
  TfExample example;
};
Row& ThreadsRow() {
  thread_local Row row;
  return row;
}

absl::Status ParseRow(const TfRecordFile& file, int64_t index, Row* row) {
  RETURN_IF_ERROR(file.Read(index, &row->record));
  return Annotate(row->example.Parse(row->record), file.Place(index));
}

// tf.Examples, which are read as they are asked for.
class TfRecordDataSet : public FileDataSet {
 public:
  // The files, their labels, and what the first row shows.
  struct Parts {
    std::vector<TfRecordFile> files;
    FileLabels labels;
    BadRows bad_rows;
    std::optional<TfExampleRow> row;
  };

  TfRecordDataSet(const Shape& example_shape, Parts parts)
      : FileDataSet(example_shape, std::move(parts.labels)),
        files_(std::move(parts.files)),
        bad_rows_(std::move(parts.bad_rows)),
        row_(*std::move(parts.row)) {}

  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const DataSetRequest& request);

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    RETURN_IF_ERROR(bad_rows_.Check(index));
    const FileRows::Place place = labels().Find(index);
    const TfRecordFile& file = files_[place.file];
    Row& row = ThreadsRow();
    RETURN_IF_ERROR(ParseRow(file, place.row, &row));
    labels().Write(index, into);
    return Annotate(row_.ReadValues(row.example, into.values),
                    file.Place(place.row));
  }

 private:
  const std::vector<TfRecordFile> files_;
  const BadRows bad_rows_;
  const TfExampleRow row_;
};

// Reads the label of one row, and what the first one shows.
absl::Status ReadLabel(const DataSetRequest& request, const TfRecordFile& file,
                       int64_t index, const ExampleMemory& into,
                       std::optional<TfExampleRow>* shown) {
  Row& row = ThreadsRow();
  RETURN_IF_ERROR(ParseRow(file, index, &row));
  if (!shown->has_value()) {
    ASSIGN_OR_RETURN(*shown, TfExampleRow::Create(request, row.example));
  }
  return Annotate((*shown)->ReadLabel(row.example, into), file.Place(index));
}

// Adds the labels of one file.
absl::Status ReadLabels(const DataSetRequest& request, const std::string& path,
                        const TfRecordFile& file,
                        TfRecordDataSet::Parts* parts) {
  const LabelSpec& wanted = request.labels;
  const int64_t rows = file.num_rows();
  std::vector<int32_t> classes(wanted.kind == LabelKind::kClass ? rows : 0);
  std::vector<float> targets(rows * wanted.num_targets);
  for (int64_t i = 0; i < rows; ++i) {
    if (wanted.kind == LabelKind::kNone && parts->row.has_value()) break;
    ExampleMemory into;
    if (!classes.empty()) into.label = &classes[i];
    if (!targets.empty()) into.targets = &targets[i * wanted.num_targets];
    const absl::Status status = ReadLabel(request, file, i, into, &parts->row);
    if (status.ok()) continue;
    if (request.spec.on_bad_record() != SKIP || !IsBadRecord(status)) {
      return status;
    }
    parts->bad_rows.Add(parts->labels.size() + i, status);
  }
  if (!targets.empty()) return parts->labels.AddTargets(path, targets);
  if (!classes.empty()) return parts->labels.Add(path, classes);
  parts->labels.AddRows(path, rows);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DataSet>> TfRecordDataSet::Create(
    const DataSetRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   FindPart(request.spec.dir(), request.split,
                            {{".tfrecord", ".tfrecords", ".tfrec"}}));
  Parts parts;
  parts.labels = FileLabels(request.labels.num_targets);
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(TfRecordFile file, TfRecordFile::Open(path));
    RETURN_IF_ERROR(ReadLabels(request, path, file, &parts));
    parts.files.push_back(std::move(file));
  }
  const int64_t rows = parts.labels.size();
  if (rows == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: '", paths[0], "' and its siblings are empty"));
  }
  if (!parts.row.has_value()) {
    return AllBad(rows, parts.bad_rows.Check(rows - 1));
  }
  return std::unique_ptr<DataSet>(
      new TfRecordDataSet(request.example_shape, std::move(parts)));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "tfrecord", WholeType("tf.Examples of train*.tfrecord and test*.tfrecord",
                          &TfRecordDataSet::Create, /*has_label_column=*/true,
                          /*has_feature_column=*/true, /*has_targets=*/true,
                          /*decodes=*/true));

}  // namespace
}  // namespace muster
