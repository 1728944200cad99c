#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/input/map/image_size.h"
#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

// The two pixels of a line, or lines of an image, between which a pixel of the
// result lies, and the second one's weight.
struct Neighbours {
  int64_t first;
  int64_t second;
  float weight;
};

// PyTorch's F.interpolate(mode="bilinear", align_corners=False), in float32 as
// there: pixels are areas, and the centres of the outermost ones are the
// border.
std::vector<Neighbours> FindNeighbours(int64_t src_size, int64_t dst_size) {
  std::vector<Neighbours> result(dst_size);
  const float scale =
      static_cast<float>(src_size) / static_cast<float>(dst_size);
  for (int64_t i = 0; i < dst_size; ++i) {
    const float place =
        std::max(scale * (static_cast<float>(i) + 0.5f) - 0.5f, 0.0f);
    const int64_t first = std::min(static_cast<int64_t>(place), src_size - 1);
    const int64_t second = std::min(first + 1, src_size - 1);
    result[i] = {first, second,
                 std::min(place - static_cast<float>(first), 1.0f)};
  }
  return result;
}

template <typename T>
T Rounded(float value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    // Means of bytes: no clamp is needed.
    return static_cast<uint8_t>(value + 0.5f);
  } else {
    return value;
  }
}

class Resize : public MapStage {
 public:
  Resize(const RowSpec& output, const Shape& input)
      : MapStage(output),
        src_height_(input.dim(1)),
        src_width_(input.dim(2)),
        rows_(FindNeighbours(src_height_, output.shape.dim(1))),
        columns_(FindNeighbours(src_width_, output.shape.dim(2))) {}

  static absl::StatusOr<std::unique_ptr<MapStage>> Create(
      const Attributes& attributes, const RowSpec& input) {
    RETURN_IF_ERROR(CheckImage(input));
    ASSIGN_OR_RETURN(const ImageSize size,
                     ReadImageSize(attributes.Ints("size")));
    ASSIGN_OR_RETURN(const RowSpec output, WithImageSize(input, size));
    return std::make_unique<Resize>(output, input.shape);
  }

  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     RowRandom* /*random*/) const override {
    if (output().dtype == UINT8) {
      Interpolate<uint8_t>(RowValues<uint8_t>(src), RowValues<uint8_t>(dst));
    } else {
      Interpolate<float>(RowValues<float>(src), RowValues<float>(dst));
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Interpolate(absl::Span<const T> src, absl::Span<T> dst) const {
    T* to = dst.data();
    const int64_t plane_size = src_height_ * src_width_;
    for (const T* plane = src.begin(); plane != src.end();
         plane += plane_size) {
      for (const Neighbours& row : rows_) {
        const T* const upper = plane + row.first * src_width_;
        const T* const lower = plane + row.second * src_width_;
        for (const Neighbours& column : columns_) {
          const float above = Between(upper, column);
          const float below = Between(lower, column);
          *to++ = Rounded<T>((1 - row.weight) * above + row.weight * below);
        }
      }
    }
  }

  template <typename T>
  static float Between(const T* line, const Neighbours& column) {
    return (1 - column.weight) * static_cast<float>(line[column.first]) +
           column.weight * static_cast<float>(line[column.second]);
  }

  const int64_t src_height_;
  const int64_t src_width_;
  // One for each row and each column of the result.
  const std::vector<Neighbours> rows_;
  const std::vector<Neighbours> columns_;
};

[[maybe_unused]] const bool kRegistered = MapStageRegistry::Register(
    "resize", {"an image of another size, bilinear, as PyTorch's interpolate",
               {ImageSizeAttr("rows and columns")},
               &Resize::Create});

}  // namespace
}  // namespace muster
