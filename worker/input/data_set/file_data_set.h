#ifndef WORKER_INPUT_DATA_SET_FILE_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_FILE_DATA_SET_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/file/class_names.h"
#include "worker/input/file/file_rows.h"

namespace muster {

// The labels of a data set in files, in memory, and their places there:
// classes, targets, or none.
class FileLabels {
 public:
  // Without `num_targets` a row has a class.
  explicit FileLabels(int64_t num_targets = 0) : num_targets_(num_targets) {}

  // The next file has these labels. Errors: InvalidArgument, with file and row
  // (one below 0, or above ClassNames::kMaxClasses).
  template <typename T>
  absl::Status Add(const std::string& path, const std::vector<T>& labels) {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] >= 0 && labels[i] < ClassNames::kMaxClasses) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("opening a data set: a label must be a class from 0 to ",
                       ClassNames::kMaxClasses - 1, ", found ", labels[i],
                       " in row ", i, " of '", path, "'"));
    }
    for (const T label : labels) {
      labels_.push_back(static_cast<int32_t>(label));
    }
    rows_.Add(static_cast<int64_t>(labels.size()));
    paths_.push_back(path);
    return absl::OkStatus();
  }

  // The next file has these targets, num_targets() a row. Errors:
  // InvalidArgument, with file and row (one that is not finite).
  absl::Status AddTargets(const std::string& path,
                          const std::vector<float>& targets) {
    for (size_t i = 0; i < targets.size(); ++i) {
      if (std::isfinite(targets[i])) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "opening a data set: a target must be a finite number, found ",
          targets[i], " in row ", i / num_targets_, " of '", path, "'"));
    }
    targets_.insert(targets_.end(), targets.begin(), targets.end());
    rows_.Add(static_cast<int64_t>(targets.size()) / num_targets_);
    paths_.push_back(path);
    return absl::OkStatus();
  }

  // The next file has so many rows, without labels.
  void AddRows(const std::string& path, int64_t rows) {
    rows_.Add(rows);
    paths_.push_back(path);
  }

  // The rows.
  int64_t size() const { return rows_.num_rows(); }
  int64_t num_targets() const { return num_targets_; }
  // The part of ExampleMemory beside the values.
  void Write(int64_t row, const ExampleMemory& into) const {
    if (into.label != nullptr) *into.label = labels_[row];
    if (into.targets != nullptr) {
      std::copy_n(targets_.begin() + row * num_targets_, num_targets_,
                  into.targets);
    }
  }
  FileRows::Place Find(int64_t row) const { return rows_.Find(row); }

  int32_t largest() const {
    return labels_.empty() ? -1
                           : *std::max_element(labels_.begin(), labels_.end());
  }
  // "row 3 of 'FILE'".
  std::string PlaceOfLargest() const {
    const auto found = std::max_element(labels_.begin(), labels_.end());
    const FileRows::Place place = Find(found - labels_.begin());
    return absl::StrCat("row ", place.row, " of '", paths_[place.file], "'");
  }

 private:
  int64_t num_targets_;
  std::vector<int32_t> labels_;
  // [rows, num_targets].
  std::vector<float> targets_;
  FileRows rows_;
  std::vector<std::string> paths_;
};

// A data set in files whose labels are in memory. Who it derives from reads
// the examples.
class FileDataSet : public DataSet {
 public:
  int64_t num_examples() const override { return labels_.size(); }
  const Shape& example_shape() const override { return example_shape_; }
  // One more than the largest label.
  int64_t num_classes() const override { return labels_.largest() + 1; }
  int64_t num_targets() const override { return labels_.num_targets(); }
  std::string LargestLabelPlace() const override {
    return labels_.PlaceOfLargest();
  }

 protected:
  // REQUIRES: there are rows.
  FileDataSet(Shape example_shape, FileLabels labels)
      : example_shape_(std::move(example_shape)), labels_(std::move(labels)) {}

  const FileLabels& labels() const { return labels_; }

 private:
  const Shape example_shape_;
  const FileLabels labels_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_FILE_DATA_SET_H_
