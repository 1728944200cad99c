#ifndef WORKER_INPUT_MAP_BILINEAR_H_
#define WORKER_INPUT_MAP_BILINEAR_H_

#include <cstdint>
#include <vector>

#include "worker/input/map/image_size.h"

namespace muster {

// Scales images of one size to another, as PyTorch's
// F.interpolate(mode="bilinear", align_corners=False) does, in float32 as
// there: pixels are areas, and the centres of the outermost ones are the
// border. Bytes are rounded to the nearest.
// Immutable, thread-safe. A thread keeps lines of its own, so that it allocates
// nothing from image to image.
class Bilinear {
 public:
  // REQUIRES: all sides > 0.
  Bilinear(const ImageSize& src, const ImageSize& dst);

  // Scales one channel, src [H, W] to dst [H', W'], of uint8_t or float.
  template <typename T>
  void Scale(const T* src, T* dst) const;

 private:
  // The two pixels of a line, or lines of an image, between which one of the
  // result lies, and their weights.
  struct Neighbours {
    int64_t first;
    int64_t second;
    float first_weight;
    float second_weight;
  };
  // A thread's lines of float32.
  struct Lines;
  static Lines& LinesOfThread();

  static std::vector<Neighbours> FindNeighbours(int64_t src_size,
                                                int64_t dst_size);

  // Makes `dst` one line of the result's width, of one line of the image.
  void Across(const float* __restrict line, float* __restrict dst) const;

  const ImageSize src_size_;
  const ImageSize dst_size_;
  // One for each row and each column of the result.
  const std::vector<Neighbours> rows_;
  const std::vector<Neighbours> columns_;
};

}  // namespace muster

#endif  // WORKER_INPUT_MAP_BILINEAR_H_
