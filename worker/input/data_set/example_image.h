#ifndef WORKER_INPUT_DATA_SET_EXAMPLE_IMAGE_H_
#define WORKER_INPUT_DATA_SET_EXAMPLE_IMAGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"

namespace muster {

// How the bytes of JPEG and PNG files become examples, [C, H, W] of byte / 255.
// Immutable, thread-safe: each thread has a decoder of its own.
class ExampleImage {
 public:
  // Images of other sizes are scaled if `spec` has a shape, as its `decode`
  // says. Errors: InvalidArgument (no shape of an image).
  static absl::StatusOr<ExampleImage> Create(const Shape& shape,
                                             const InputSpec& spec);

  // Errors, without the name of the file: ImageDecoder::Decode's;
  // InvalidArgument (an image of another size, if it is not scaled).
  absl::Status Decode(absl::Span<const uint8_t> file, float* example) const;

 private:
  // A thread's own, for the data sets that it reads one after the other.
  struct Work;

  ExampleImage(const Shape& shape, const InputSpec& spec)
      : shape_(shape), scales_(!spec.shape().empty()), decode_(spec.decode()) {}

  absl::Status PrepareDecoder(Work* work) const;

  Shape shape_;
  bool scales_;
  ImageDecode decode_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_EXAMPLE_IMAGE_H_
