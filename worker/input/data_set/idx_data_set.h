#ifndef WORKER_INPUT_DATA_SET_IDX_DATA_SET_H_
#define WORKER_INPUT_DATA_SET_IDX_DATA_SET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/data_set_registry.h"

namespace muster {

// One half of MNIST or of a set distributed in its form. Keeps the bytes in
// memory and gives pixels as byte / 255. Immutable, thread-safe.
class IdxDataSet : public DataSet {
 public:
  // Reads PREFIX-images-idx3-ubyte and, unless `labels` is kNone,
  // PREFIX-labels-idx1-ubyte in `dir`, each with or without ".gz". Errors: as
  // CreateDataSet.
  static absl::StatusOr<std::unique_ptr<DataSet>> Create(
      const std::string& dir, const Shape& input_shape,
      absl::string_view prefix, LabelKind labels = LabelKind::kClass);

  int64_t num_examples() const override {
    return static_cast<int64_t>(images_.size()) / example_bytes_;
  }
  const Shape& example_shape() const override { return example_shape_; }
  // One more than the largest label; 0 without labels.
  int64_t num_classes() const override { return num_classes_; }
  std::string LargestLabelPlace() const override;
  std::vector<std::string> Files() const override {
    if (labels_.empty()) return {images_path_};
    return {images_path_, labels_path_};
  }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override;

 private:
  IdxDataSet(const Shape& example_shape, std::vector<uint8_t> images,
             std::vector<uint8_t> labels, std::string images_path,
             std::string labels_path);

  const Shape example_shape_;
  // [N, example_bytes_] and [N], or nothing.
  const std::vector<uint8_t> images_;
  const std::vector<uint8_t> labels_;
  const std::string images_path_;
  const std::string labels_path_;
  const int64_t example_bytes_;
  const int64_t num_classes_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_IDX_DATA_SET_H_
