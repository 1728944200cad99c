#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/half_names.h"
#include "worker/input/file/npy_file.h"
#include "worker/input/file/npz_member.h"

namespace muster {
namespace {

// NumPy's arrays of examples and of labels: the two of an npz file, or two npy
// files. The examples are read as they are asked for, the labels are in memory.
class NpyPart : public Part {
 public:
  static absl::StatusOr<std::unique_ptr<Part>> Open(
      const DataSetRequest& request, const PartFiles& files,
      absl::Span<const Column> known);

  std::optional<int64_t> num_rows() const override {
    return examples_.num_rows();
  }
  absl::Status Read(int64_t row, absl::Span<const size_t> wanted,
                    Row* into) const override;

 private:
  NpyPart(const PartFiles& files, std::vector<Column> columns, NpyFile examples)
      : Part(files, std::move(columns)), examples_(std::move(examples)) {}

  absl::Status ReadLabels(const NpyFile& labels, LabelKind kind);

  const NpyFile examples_;
  // [num_rows(), label_values_], of the one kind or of the other.
  std::vector<int64_t> classes_;
  std::vector<float> targets_;
  int64_t label_values_ = 0;
};

// "train_labels.npy", "y.npy", "train-y.npy", "labels": of labels.
bool NamesLabels(absl::string_view text) {
  const std::string name = absl::AsciiStrToLower(text);
  return absl::StrContains(name, "label") || name == "y" ||
         absl::StartsWith(name, "y_") || absl::EndsWith(name, "_y") ||
         absl::EndsWith(name, "-y");
}

// "train_labels" of "DIR/train_labels.npy.gz".
absl::string_view StemOf(absl::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.find(".npy"));
}

// Whether an array of an npz file is of the half: each is, unless its name says
// otherwise, if the name of the file, or of its folder, says so.
bool IsOfHalf(const DataSetRequest& request, absl::string_view path,
              absl::string_view array) {
  if (NamesHalf(array, request.split)) return true;
  absl::ConsumePrefix(&path, request.spec.dir());
  absl::ConsumePrefix(&path, "/");
  const Split other =
      request.split == Split::kTrain ? Split::kTest : Split::kTrain;
  return NamesHalf(path, request.split) && !NamesHalf(array, other);
}

// The array of a file of examples, or of labels; of an npz file the one whose
// name fits.
absl::StatusOr<NpyFile> OpenArray(const DataSetRequest& request,
                                  const std::string& path, bool labels) {
  if (!absl::EndsWith(path, ".npz")) return NpyFile::Open(path);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNpz(path));
  std::vector<std::string> of_half;
  std::vector<std::string> fitting;
  for (const std::string& name : names) {
    if (!IsOfHalf(request, path, name)) continue;
    of_half.push_back(name);
    if (NamesLabels(name) == labels) fitting.push_back(name);
  }
  if (fitting.size() == 1) return OpenNpzMember(path, fitting[0]);
  if (of_half.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "opening a data set: wanted in '", path, "' arrays whose names have '",
        PartName(request.split), "', found ", absl::StrJoin(names, ", ")));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: wanted in '", path, "' one array of ",
      labels ? "labels" : "examples", " of the ", PartName(request.split),
      " half",
      ", those of labels being called y or with 'label' in their names; found ",
      fitting.size(), " among ", absl::StrJoin(names, ", ")));
}

Column ColumnOf(const char* name, ColumnKind kind, const NpyFile& array) {
  return {name, kind,
          std::vector<int64_t>(array.shape().begin() + 1, array.shape().end())};
}

absl::StatusOr<std::unique_ptr<Part>> NpyPart::Open(
    const DataSetRequest& request, const PartFiles& files,
    absl::Span<const Column> /*known*/) {
  ASSIGN_OR_RETURN(NpyFile examples,
                   OpenArray(request, files[0], /*labels=*/false));
  const ColumnKind kind = examples.type() == NpyType::kU1 ? ColumnKind::kBytes
                                                          : ColumnKind::kNumber;
  std::vector<Column> columns = {ColumnOf("example", kind, examples)};
  const LabelKind label_kind = request.labels.kind;
  if (label_kind == LabelKind::kNone) {
    return absl::WrapUnique(
        new NpyPart(files, std::move(columns), std::move(examples)));
  }
  ASSIGN_OR_RETURN(const NpyFile labels,
                   OpenArray(request, files.back(), /*labels=*/true));
  if (labels.num_rows() != examples.num_rows()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: '", files.back(), "' has ", labels.num_rows(),
        " labels, wanted one for each of ", examples.num_rows(), " examples"));
  }
  columns.push_back(ColumnOf("label",
                             label_kind == LabelKind::kClass
                                 ? ColumnKind::kInteger
                                 : ColumnKind::kNumber,
                             labels));
  auto part = absl::WrapUnique(
      new NpyPart(files, std::move(columns), std::move(examples)));
  RETURN_IF_ERROR(part->ReadLabels(labels, label_kind));
  return part;
}

absl::Status NpyPart::ReadLabels(const NpyFile& labels, LabelKind kind) {
  label_values_ = labels.row_values();
  const int64_t rows = labels.num_rows();
  // A file with holes announces more rows than it has bytes on the disk.
  RETURN_IF_ERROR(CheckMemory(
      absl::StrCat("opening a data set: the labels of '", files().back(), "'"),
      SaturatingProduct(SaturatingProduct(rows, label_values_),
                        sizeof(int64_t)),
      OwnMemoryLimit()));
  if (kind == LabelKind::kClass) {
    classes_.resize(rows * label_values_);
    return labels.ReadRows(0, rows, absl::MakeSpan(classes_));
  }
  targets_.resize(rows * label_values_);
  return labels.ReadRows(0, rows, absl::MakeSpan(targets_));
}

absl::Status NpyPart::Read(int64_t row, absl::Span<const size_t> wanted,
                           Row* into) const {
  if (!classes_.empty()) {
    into->cells[1] = absl::MakeConstSpan(classes_).subspan(row * label_values_,
                                                           label_values_);
  } else if (!targets_.empty()) {
    into->cells[1] = absl::MakeConstSpan(targets_).subspan(row * label_values_,
                                                           label_values_);
  }
  if (std::find(wanted.begin(), wanted.end(), 0) == wanted.end()) {
    return absl::OkStatus();
  }
  if (columns()[0].kind == ColumnKind::kBytes) {
    RETURN_IF_ERROR(
        examples_.ReadBytes(row, into->MakeBytes(examples_.row_values())));
    into->cells[0] = absl::string_view(into->bytes);
    return absl::OkStatus();
  }
  const absl::Span<float> numbers = into->MakeNumbers(examples_.row_values());
  into->cells[0] = absl::Span<const float>(numbers);
  return examples_.ReadRows(row, 1, numbers);
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

// Each npz file is a part, and so is each pair of npy files; without labels, a
// file of examples.
absl::StatusOr<std::vector<PartFiles>> PairArrays(
    const DataSetRequest& request, const std::vector<std::string>& found) {
  const bool labelled = request.labels.kind != LabelKind::kNone;
  std::vector<PartFiles> parts;
  std::vector<std::string> examples;
  std::vector<std::string> labels;
  for (const std::string& path : found) {
    const bool of_labels = NamesLabels(StemOf(path));
    if (absl::EndsWith(path, ".npz") || (!labelled && !of_labels)) {
      parts.push_back({path});
    } else {
      (of_labels ? labels : examples).push_back(path);
    }
  }
  if (!labelled) return parts;
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
    parts.push_back({examples[i], labels[i]});
  }
  return parts;
}

DataSetType MakeType() {
  DataSetType type;
  type.help = "NumPy's arrays: train*.npz, or train*.npy in pairs with labels";
  type.names = {{".npy", ".npz"}, /*also_train=*/{}, /*both=*/{".npz"}};
  type.pair = &PairArrays;
  type.open = &NpyPart::Open;
  type.has_targets = true;
  type.has_labels_apart = true;
  return type;
}

[[maybe_unused]] const bool kRegistered =
    DataSetRegistry::Register("npy", MakeType());

}  // namespace
}  // namespace muster
