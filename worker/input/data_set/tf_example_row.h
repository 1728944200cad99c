#ifndef WORKER_INPUT_DATA_SET_TF_EXAMPLE_ROW_H_
#define WORKER_INPUT_DATA_SET_TF_EXAMPLE_ROW_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_image.h"
#include "worker/input/file/tf_example.h"

namespace muster {

// Which features of a tf.Example are an example and its label, and how they are
// read: bytes as raw pixels, channels last, as TensorFlow has them, or as JPEG
// and PNG files; numbers in the model's order. Immutable, thread-safe. Errors
// of reading: TfExample's, ExampleImage::Decode's, InvalidArgument (bytes of
// another number, a class out of range), without the row.
class TfExampleRow {
 public:
  // `first`, a row of the data set, shows the name of the feature, if the
  // request does not say it, and whether bytes are an image file. Errors:
  // ExampleImage::Create's.
  static absl::StatusOr<TfExampleRow> Create(const DataSetRequest& request,
                                             const TfExample& first);

  absl::Status ReadValues(const TfExample& example, float* dst) const;
  // The class or the targets, if they are wanted.
  absl::Status ReadLabel(const TfExample& example,
                         const ExampleMemory& into) const;

 private:
  TfExampleRow(const DataSetRequest& request, std::string feature);

  absl::Status ReadPixels(absl::string_view bytes, float* dst) const;

  Shape shape_;
  std::string feature_;
  std::string label_;
  int64_t num_targets_;
  // The bytes are image files.
  std::optional<ExampleImage> image_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_TF_EXAMPLE_ROW_H_
