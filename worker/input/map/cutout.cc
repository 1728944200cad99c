#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "common/base/status_macros.h"
#include "worker/input/map/image_size.h"
#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

// DeVries and Taylor, "Improved regularization of convolutional neural networks
// with cutout" (2017): the square's centre is any pixel, so that a part of the
// square may lie outside.
class Cutout : public MapStage {
 public:
  Cutout(const RowSpec& output, int64_t size) : MapStage(output), size_(size) {}

  static absl::StatusOr<std::unique_ptr<MapStage>> Create(
      const Attributes& attributes, const RowSpec& input) {
    RETURN_IF_ERROR(CheckImage(input));
    return std::make_unique<Cutout>(input, attributes.Int("size"));
  }

  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     RowRandom* random) const override {
    std::memcpy(dst.data(), src.data(), src.size());
    if (random == nullptr) return absl::OkStatus();
    const Shape& shape = output().shape;
    const Side rows = DrawSide(shape.dim(1), random);
    const Side columns = DrawSide(shape.dim(2), random);
    const size_t bytes = SizeOf(output().dtype);
    for (int64_t c = 0; c < shape.dim(0); ++c) {
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        const int64_t line = (c * shape.dim(1) + y) * shape.dim(2);
        std::memset(dst.data() + (line + columns.begin) * bytes, 0,
                    (columns.end - columns.begin) * bytes);
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Side {
    int64_t begin;
    int64_t end;
  };

  // The part of a square's side that lies in [0, extent).
  Side DrawSide(int64_t extent, RowRandom* random) const {
    const int64_t begin = random->Below(extent) - size_ / 2;
    return {std::max<int64_t>(begin, 0), std::min(begin + size_, extent)};
  }

  const int64_t size_;
};

[[maybe_unused]] const bool kRegistered = MapStageRegistry::Register(
    "cutout", {"zeroes a square at a random place of an image; training only",
               {IntAttr("size", "rows and columns of the square")
                    .AtLeast(1)
                    .AtMost(kMaxImageSide)},
               &Cutout::Create});

}  // namespace
}  // namespace muster
