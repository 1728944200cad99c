#ifndef WORKER_INPUT_IMAGE_PIXEL_SCALING_H_
#define WORKER_INPUT_IMAGE_PIXEL_SCALING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/input/image/image_header.h"

namespace muster {

// Scales decoded images with antialiasing, as Pillow's resize(BILINEAR) does: a
// pixel of the result is a mean of those around its place, weighted by a
// triangle that reaches one pixel of the coarser of both images to each side.
// Sums are float32, and rounded once, where Pillow rounds after each axis.
// Not thread-safe. Its memory grows to the largest image's and stays: two
// weights for each row and column, and a line of float32.
class PixelScaling {
 public:
  // Scales src [H, W, C] to dst [H', W', C].
  // REQUIRES: all sides > 0; `channels` is 1 or 3; no memory is shared.
  void Scale(const uint8_t* src, const PixelSize& src_size,
             const PixelSize& dst_size, int channels, uint8_t* dst);

 private:
  // The lines of pixels that one of the result is the mean of.
  struct Window {
    int first = 0;
    int count = 0;
    // Into Axis::weights.
    size_t weights = 0;
  };

  // Rows or columns.
  struct Axis {
    int src = 0;
    int dst = 0;
    // One for each of the result.
    std::vector<Window> windows;
    std::vector<float> weights;

    // Finds the windows, unless they are there.
    void Fit(int src_size, int dst_size);
    void AddWindow(double centre, double reach);
  };

  // Makes `line_` the mean of the rows of a window, of `size` values each.
  void MeanOfRows(const uint8_t* src, const Window& window, size_t size);
  // Makes `scaled_line_` of `line_`.
  template <int kChannels>
  void Across();

  Axis rows_;
  Axis columns_;
  // Of the image's width, and of the result's.
  std::vector<float> line_;
  std::vector<float> scaled_line_;
};

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_PIXEL_SCALING_H_
