#ifndef WORKER_INPUT_DATA_SET_DATA_SET_REGISTRY_H_
#define WORKER_INPUT_DATA_SET_DATA_SET_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/registry.h"
#include "common/base/work_progress.h"
#include "common/tensor/shape.h"
#include "proto/data_schema.pb.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/part.h"

namespace muster {

// The labels beside an example's values.
enum class LabelKind {
  kClass,
  // Numbers that a model's outputs are compared with.
  kTargets,
  // Nothing: the files need not have labels.
  kNone,
};

struct LabelSpec {
  LabelKind kind = LabelKind::kClass;
  // kTargets: how many a row has.
  int64_t num_targets = 0;
  // Each row has a weight, of input.weight_column and of these classes; where
  // there is neither, it is 1.
  bool weighted = false;
  std::vector<ClassWeight> class_weights = {};
};

// The half of a data set that is to be opened.
struct DataSetRequest {
  InputSpec spec;
  // One example before input.map.
  Shape example_shape;
  uint64_t seed = 0;
  Split split = Split::kTrain;
  // Types without has_targets are not asked for kTargets.
  LabelSpec labels;
  // The run's, by which columns and classes go; null: a new run's training
  // half.
  std::shared_ptr<const DataSchema> run = nullptr;
  // The progress of the opening, after which nobody uses it: shared with what
  // keeps the request.
  std::shared_ptr<WorkProgress> progress = std::make_shared<WorkProgress>();
};

// The texts that a type has for classes. The names of both halves get their
// indices from the training half, in the order of their bytes.
enum class ClassTexts {
  // None: classes are integers.
  kNone,
  kNames,
  // Integers from 0, which stand for themselves, if all texts are.
  kNamesOrNumbers,
};

// How the files of a type of data set are called.
struct PartNames {
  // ".csv": the files' endings, ".gz" may follow, and so may "-00000-of-00004".
  std::vector<std::string> endings;
  // Beginnings of a half's files besides "train" and "test".
  std::vector<std::string> also_train = {};
  // ".npz": endings of files that may hold both halves.
  std::vector<std::string> both = {};
  // Without endings: whether an entry of input.dir, by its name, is of the test
  // half. Null: the type makes the half.
  bool (*is_test)(absl::string_view entry) = nullptr;
};

// The paths of one part.
using PartFiles = std::vector<std::string>;

// Opens a part. `known`: the columns of the parts before it, if a row of them
// shows any. Errors: NotFound, Unavailable, InvalidArgument and DataLoss with
// the path.
using OpenPart = absl::StatusOr<std::unique_ptr<Part>>(
    const DataSetRequest& request, const PartFiles& files,
    absl::Span<const Column> known);

// A type of data set: its files become parts, which yield rows. All else is
// done above it, for all types alike. A type has a way to open a part for
// reading at random, or in order, or both.
struct DataSetType {
  // One line about it.
  std::string help;
  // The names of a half's files. Without endings input.dir is the one part.
  PartNames names;
  // Makes parts of the files that were found; null: each file is one.
  absl::StatusOr<std::vector<PartFiles>> (*pair)(
      const DataSetRequest& request,
      const std::vector<std::string>& found) = nullptr;
  OpenPart* open = nullptr;
  OpenPart* open_in_order = nullptr;
  // Reads the cells of the columns `wanted` of a row of open_in_order that is
  // not bad, into views that are valid until the thread calls it again.
  // Thread-safe. Errors, without the place: InvalidArgument, DataLoss.
  absl::Status (*parse)(absl::Span<const Column> columns, const Record& record,
                        absl::Span<const size_t> wanted, Row* into) = nullptr;
  // The unit of Record::place.
  std::string place_name = "row";
  // input.label_column with input.weight_column, and input.feature_column mean
  // something to it.
  bool has_label_column = false;
  bool has_feature_column = false;
  // And so does input.header.
  bool has_header = false;
  // Its labels may be targets; else a class stands for them.
  bool has_targets = false;
  ClassTexts class_texts = ClassTexts::kNone;
  // Labels lie apart from the examples: one that is wrong is an error, even if
  // bad rows are skipped.
  bool has_labels_apart = false;
  // A row costs more than copying its bytes.
  bool decodes = false;
};

struct DataSetTag {
  static constexpr char kKind[] = "data set";
};

// Data sets by their `input.type`, which are listed in data_sets.bzl:
//
//   DataSetType MakeType() {
//     DataSetType type;
//     type.help = "the binary files of CIFAR-10 or CIFAR-100 in input.dir";
//     type.names.endings = {".bin"};
//     type.open = &CifarPart::Open;
//     return type;
//   }
//   [[maybe_unused]] const bool kRegistered =
//       DataSetRegistry::Register("cifar", MakeType());
using DataSetRegistry = Registry<DataSetTag, DataSetType>;

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_DATA_SET_REGISTRY_H_
