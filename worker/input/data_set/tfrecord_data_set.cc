#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/data_set/file_data_set.h"
#include "worker/input/data_set/find_part.h"
#include "worker/input/file/tf_example.h"
#include "worker/input/file/tf_record_file.h"

namespace muster {
namespace {

constexpr const char* kUsualFeatures[] = {"image", "image_raw", "features",
                                          "x"};
constexpr char kDefaultLabel[] = "label";

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

// tf.Examples, which are read as they are asked for: bytes (raw pixels,
// channels last, as TensorFlow has them) or lists of numbers, in the model's
// order.
class TfRecordDataSet : public FileDataSet {
 public:
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const DataSetRequest& request);

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    const FileRows::Place place = labels().Find(index);
    const TfRecordFile& file = files_[place.file];
    Row& row = ThreadsRow();
    RETURN_IF_ERROR(ParseRow(file, place.row, &row));
    labels().Write(index, into);
    return Annotate(ReadExample(row.example, into.values),
                    file.Place(place.row));
  }

 private:
  TfRecordDataSet(const Shape& example_shape, FileLabels labels,
                  std::vector<TfRecordFile> files, std::string feature)
      : FileDataSet(example_shape, std::move(labels)),
        files_(std::move(files)),
        feature_(std::move(feature)) {}

  absl::Status ReadExample(const TfExample& example, float* dst) const;

  const std::vector<TfRecordFile> files_;
  const std::string feature_;
};

absl::Status TfRecordDataSet::ReadExample(const TfExample& example,
                                          float* dst) const {
  const Shape& shape = example_shape();
  const int64_t values = shape.num_elements();
  ASSIGN_OR_RETURN(const Feature::KindCase kind, example.Kind(feature_));
  if (kind != Feature::kBytesList) {
    return example.ReadFloats(feature_, absl::MakeSpan(dst, values));
  }
  ASSIGN_OR_RETURN(const absl::string_view bytes, example.Bytes(feature_));
  if (static_cast<int64_t>(bytes.size()) != values) {
    return absl::InvalidArgumentError(
        absl::StrCat("feature '", feature_, "': wanted the ", values,
                     " bytes of an example of model.input_shape ",
                     shape.ToString(), ", found ", bytes.size()));
  }
  const auto* pixels = reinterpret_cast<const uint8_t*>(bytes.data());
  if (shape.rank() == 3) {
    ToChannelsFirst(pixels, shape, 255.0f, dst);
    return absl::OkStatus();
  }
  ScaleBytes(absl::MakeConstSpan(pixels, values), dst);
  return absl::OkStatus();
}

// input.feature_column, or the first usual name that the example has.
std::string FeatureOf(const InputSpec& spec, const TfExample& example) {
  if (!spec.feature_column().empty()) return spec.feature_column();
  for (const char* const name : kUsualFeatures) {
    if (example.Kind(name).ok()) return name;
  }
  return kUsualFeatures[0];
}

// Adds the labels of one file, and finds `feature` if it is empty.
absl::Status ReadLabels(const std::string& path, const TfRecordFile& file,
                        const DataSetRequest& request, std::string* feature,
                        FileLabels* labels) {
  const std::string name = request.spec.label_column().empty()
                               ? kDefaultLabel
                               : request.spec.label_column();
  const LabelSpec& wanted = request.labels;
  std::vector<int64_t> classes;
  std::vector<float> targets(file.num_rows() * wanted.num_targets);
  Row row;
  for (int64_t i = 0; i < file.num_rows(); ++i) {
    RETURN_IF_ERROR(ParseRow(file, i, &row));
    if (feature->empty()) *feature = FeatureOf(request.spec, row.example);
    if (wanted.kind == LabelKind::kClass) {
      const absl::StatusOr<int64_t> value = row.example.Integer(name);
      if (!value.ok()) return Annotate(value.status(), file.Place(i));
      classes.push_back(*value);
    } else if (wanted.kind == LabelKind::kTargets) {
      const auto dst = absl::MakeSpan(targets).subspan(i * wanted.num_targets,
                                                       wanted.num_targets);
      RETURN_IF_ERROR(
          Annotate(row.example.ReadFloats(name, dst), file.Place(i)));
    }
  }
  switch (wanted.kind) {
    case LabelKind::kClass:
      return labels->Add(path, classes);
    case LabelKind::kTargets:
      return labels->AddTargets(path, targets);
    case LabelKind::kNone:
      labels->AddRows(path, file.num_rows());
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DataSet>> TfRecordDataSet::Create(
    const DataSetRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   FindPart(request.spec.dir(), request.split,
                            {{".tfrecord", ".tfrecords", ".tfrec"}}));
  std::vector<TfRecordFile> files;
  FileLabels labels(request.labels.num_targets);
  std::string feature;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(TfRecordFile file, TfRecordFile::Open(path));
    RETURN_IF_ERROR(ReadLabels(path, file, request, &feature, &labels));
    files.push_back(std::move(file));
  }
  if (labels.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: '", paths[0], "' and its siblings are empty"));
  }
  std::unique_ptr<TfRecordDataSet> data_set(
      new TfRecordDataSet(request.example_shape, std::move(labels),
                          std::move(files), std::move(feature)));
  // The first row shows whether the model can read them.
  std::vector<float> values(request.example_shape.num_elements());
  RETURN_IF_ERROR(data_set->Read(0, {values.data()}));
  return std::unique_ptr<DataSet>(std::move(data_set));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "tfrecord", {"tf.Examples of train*.tfrecord and test*.tfrecord",
                 &TfRecordDataSet::Create, /*has_label_column=*/true,
                 /*has_feature_column=*/true, /*has_targets=*/true});

}  // namespace
}  // namespace muster
