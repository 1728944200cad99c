#ifndef WORKER_INPUT_FILE_DATA_SET_H_
#define WORKER_INPUT_FILE_DATA_SET_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set.h"
#include "worker/input/file/class_names.h"
#include "worker/input/file/file_rows.h"

namespace muster {

// The labels of a data set in files, in memory, and their places there.
class FileLabels {
 public:
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

  int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  int32_t at(int64_t row) const { return labels_[row]; }
  FileRows::Place Find(int64_t row) const { return rows_.Find(row); }

  int32_t largest() const {
    return labels_.empty() ? 0
                           : *std::max_element(labels_.begin(), labels_.end());
  }
  // "row 3 of 'FILE'".
  std::string PlaceOfLargest() const {
    const auto found = std::max_element(labels_.begin(), labels_.end());
    const FileRows::Place place = Find(found - labels_.begin());
    return absl::StrCat("row ", place.row, " of '", paths_[place.file], "'");
  }

 private:
  std::vector<int32_t> labels_;
  FileRows rows_;
  std::vector<std::string> paths_;
};

// A data set in files whose labels are in memory. What it derives from reads
// the examples.
class FileDataSet : public DataSet {
 public:
  int64_t num_examples() const override { return labels_.size(); }
  const Shape& example_shape() const override { return example_shape_; }
  // One more than the largest label.
  int64_t num_classes() const override { return labels_.largest() + 1; }
  std::string LargestLabelPlace() const override {
    return labels_.PlaceOfLargest();
  }

 protected:
  // REQUIRES: there are labels.
  FileDataSet(Shape example_shape, FileLabels labels)
      : example_shape_(std::move(example_shape)), labels_(std::move(labels)) {}

  const FileLabels& labels() const { return labels_; }

 private:
  const Shape example_shape_;
  const FileLabels labels_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_DATA_SET_H_
