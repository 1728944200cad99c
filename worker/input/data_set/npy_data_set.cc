#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/data_set/file_data_set.h"
#include "worker/input/data_set/find_part.h"
#include "worker/input/file/npy_file.h"
#include "worker/input/file/npz_member.h"

namespace muster {
namespace {

// The arrays of one file or pair of files.
struct ArrayPair {
  // The file of the labels, for messages.
  std::string path;
  NpyFile examples;
  // nullopt: there are none.
  std::optional<NpyFile> labels = std::nullopt;
};

// NumPy's arrays of examples and labels, whose examples are read as they are
// asked for.
class NpyDataSet : public FileDataSet {
 public:
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const DataSetRequest& request);

  std::vector<std::string> Files() const override { return paths_; }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override;

 private:
  NpyDataSet(const Shape& example_shape, FileLabels labels,
             std::vector<NpyFile> files, ExampleLayout layout,
             std::vector<std::string> paths)
      : FileDataSet(example_shape, std::move(labels)),
        files_(std::move(files)),
        layout_(layout),
        paths_(std::move(paths)) {}

  const std::vector<NpyFile> files_;
  const ExampleLayout layout_;
  // Those of examples and of labels.
  const std::vector<std::string> paths_;
};

absl::Status NpyDataSet::Read(int64_t index, const ExampleMemory& into) const {
  const FileRows::Place place = labels().Find(index);
  const NpyFile& file = files_[place.file];
  const float divisor = file.type() == NpyType::kU1 ? 255.0f : 1.0f;
  const int64_t values = file.row_values();
  labels().Write(index, into);
  if (layout_ == ExampleLayout::kChannelsLast) {
    // A thread's own, so that nothing is allocated from row to row.
    thread_local std::vector<float> row;
    row.resize(values);
    RETURN_IF_ERROR(file.ReadRows(place.row, 1, absl::MakeSpan(row)));
    ToChannelsFirst(row.data(), example_shape(), divisor, into.values);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(
      file.ReadRows(place.row, 1, absl::MakeSpan(into.values, values)));
  if (divisor == 1.0f) return absl::OkStatus();
  for (int64_t i = 0; i < values; ++i) into.values[i] /= divisor;
  return absl::OkStatus();
}

// "train_labels.npy", "y.npy", "train-y.npy", "labels": of labels.
bool NamesLabels(absl::string_view name) {
  return absl::StrContains(name, "label") || name == "y" ||
         absl::StartsWith(name, "y_") || absl::EndsWith(name, "_y") ||
         absl::EndsWith(name, "-y");
}

// "train_labels" of "DIR/train_labels.npy.gz".
absl::string_view StemOf(absl::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.find(".npy"));
}

// The array of an npz file that holds labels, or the one that does not.
absl::StatusOr<NpyFile> OpenMember(const std::string& path, bool labels) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNpz(path));
  std::vector<std::string> fitting;
  for (const std::string& name : names) {
    if (NamesLabels(name) == labels) fitting.push_back(name);
  }
  if (fitting.size() == 1) return OpenNpzMember(path, fitting[0]);
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: wanted in '", path, "' one array of ",
      labels ? "labels" : "examples",
      ", those of labels being called y or with 'label' in their names; found ",
      fitting.size(), " among ", absl::StrJoin(names, ", ")));
}

// The numbers in a path, which tell the piece: "1" of "train_1_labels.npy".
std::string NumbersIn(absl::string_view path) {
  std::string numbers;
  for (const char c : path) {
    if (absl::ascii_isdigit(c)) {
      numbers.push_back(c);
    } else if (!numbers.empty() && numbers.back() != ' ') {
      numbers.push_back(' ');
    }
  }
  return numbers;
}

// Puts the files of many pairs in one order: sorted by name, "train_1.npy" is
// before "train_10.npy", but "train_1_labels.npy" after "train_10_labels.npy".
absl::Status MatchPieces(std::vector<std::string>* examples,
                         std::vector<std::string>* labels) {
  const auto by_numbers = [](const std::string& a, const std::string& b) {
    return NumbersIn(a) < NumbersIn(b);
  };
  std::stable_sort(examples->begin(), examples->end(), by_numbers);
  std::stable_sort(labels->begin(), labels->end(), by_numbers);
  for (size_t i = 0; i < examples->size() && examples->size() > 1; ++i) {
    if (NumbersIn((*examples)[i]) == NumbersIn((*labels)[i])) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: wanted the same numbers in the names of each "
        "file of examples and its labels, found '",
        (*examples)[i], "' and '", (*labels)[i], "'"));
  }
  return absl::OkStatus();
}

// The arrays of examples alone: those of labels are passed over.
absl::StatusOr<std::vector<ArrayPair>> OpenExamples(
    const std::vector<std::string>& paths) {
  std::vector<ArrayPair> arrays;
  for (const std::string& path : paths) {
    if (absl::EndsWith(path, ".npz")) {
      ASSIGN_OR_RETURN(NpyFile rows, OpenMember(path, /*labels=*/false));
      arrays.push_back({path, std::move(rows)});
    } else if (!NamesLabels(StemOf(path))) {
      ASSIGN_OR_RETURN(NpyFile rows, NpyFile::Open(path));
      arrays.push_back({path, std::move(rows)});
    }
  }
  return arrays;
}

absl::StatusOr<std::vector<ArrayPair>> OpenPairs(
    const std::vector<std::string>& paths) {
  std::vector<ArrayPair> pairs;
  std::vector<std::string> examples;
  std::vector<std::string> labels;
  for (const std::string& path : paths) {
    if (absl::EndsWith(path, ".npz")) {
      ASSIGN_OR_RETURN(NpyFile rows, OpenMember(path, /*labels=*/false));
      ASSIGN_OR_RETURN(NpyFile classes, OpenMember(path, /*labels=*/true));
      pairs.push_back({path, std::move(rows), std::move(classes)});
      continue;
    }
    (NamesLabels(StemOf(path)) ? labels : examples).push_back(path);
  }
  if (examples.size() != labels.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: wanted a .npy file of labels (its name has "
        "'label', or ends in '_y') for each of examples, found ",
        examples.size(), " of examples (", absl::StrJoin(examples, ", "),
        ") and ", labels.size(), " of labels (", absl::StrJoin(labels, ", "),
        ")"));
  }
  RETURN_IF_ERROR(MatchPieces(&examples, &labels));
  for (size_t i = 0; i < examples.size(); ++i) {
    ASSIGN_OR_RETURN(NpyFile rows, NpyFile::Open(examples[i]));
    ASSIGN_OR_RETURN(NpyFile classes, NpyFile::Open(labels[i]));
    pairs.push_back({labels[i], std::move(rows), std::move(classes)});
  }
  return pairs;
}

absl::Status AddLabels(const ArrayPair& pair, FileLabels* labels) {
  if (!pair.labels.has_value()) {
    labels->AddRows(pair.path, pair.examples.num_rows());
    return absl::OkStatus();
  }
  const int64_t wanted = std::max<int64_t>(1, labels->num_targets());
  if (pair.labels->num_rows() != pair.examples.num_rows() ||
      pair.labels->row_values() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: '", pair.path, "' has ", pair.labels->num_rows(),
        " labels of ", pair.labels->row_values(), " value(s), wanted ", wanted,
        " value(s) for each of ", pair.examples.num_rows(), " examples"));
  }
  // A file with holes announces more rows than it has bytes on the disk.
  RETURN_IF_ERROR(CheckMemory(
      absl::StrCat("opening a data set: the labels of '", pair.path, "'"),
      SaturatingProduct(SaturatingProduct(pair.labels->num_rows(), wanted),
                        sizeof(int64_t)),
      OwnMemoryLimit()));
  const int64_t rows = pair.labels->num_rows();
  if (labels->num_targets() > 0) {
    std::vector<float> targets(rows * wanted);
    RETURN_IF_ERROR(pair.labels->ReadRows(0, rows, absl::MakeSpan(targets)));
    return labels->AddTargets(pair.path, targets);
  }
  std::vector<int64_t> values(rows);
  RETURN_IF_ERROR(pair.labels->ReadRows(0, rows, absl::MakeSpan(values)));
  return labels->Add(pair.path, values);
}

absl::StatusOr<std::unique_ptr<DataSet>> NpyDataSet::Create(
    const DataSetRequest& request) {
  ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      FindPart(request.spec.dir(), request.split, {{".npy", ".npz"}}));
  const Shape& input_shape = request.example_shape;
  ASSIGN_OR_RETURN(std::vector<ArrayPair> pairs,
                   request.labels.kind == LabelKind::kNone ? OpenExamples(paths)
                                                           : OpenPairs(paths));
  std::vector<NpyFile> files;
  FileLabels labels(request.labels.num_targets);
  ExampleLayout layout = ExampleLayout::kAsModel;
  for (ArrayPair& pair : pairs) {
    const std::vector<int64_t>& shape = pair.examples.shape();
    const std::vector<int64_t> example(shape.begin() + 1, shape.end());
    const bool is_first = files.empty();
    ASSIGN_OR_RETURN(
        const ExampleLayout found,
        FitExample(example, input_shape, absl::StrCat("'", pair.path, "'")));
    if (!is_first && found != layout) {
      return absl::InvalidArgumentError(absl::StrCat(
          "opening a data set: the examples beside '", pair.path, "' are [",
          absl::StrJoin(example, ", "), "], unlike those of the files before"));
    }
    layout = found;
    RETURN_IF_ERROR(AddLabels(pair, &labels));
    files.push_back(std::move(pair.examples));
  }
  if (labels.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: the arrays of '", paths[0], "' have no rows"));
  }
  return std::unique_ptr<DataSet>(new NpyDataSet(
      input_shape, std::move(labels), std::move(files), layout, paths));
}

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "npy",
    WholeType("NumPy's arrays: train*.npz, or train*.npy in pairs with labels",
              &NpyDataSet::Create, /*has_label_column=*/false,
              /*has_feature_column=*/false, /*has_targets=*/true));

}  // namespace
}  // namespace muster
