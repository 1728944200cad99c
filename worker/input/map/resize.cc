#include <cstdint>
#include <memory>

#include "common/base/status_macros.h"
#include "worker/input/map/bilinear.h"
#include "worker/input/map/image_size.h"
#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

class Resize : public MapStage {
 public:
  Resize(const RowSpec& output, const Bilinear& scaling)
      : MapStage(output), scaling_(scaling) {}

  static absl::StatusOr<std::unique_ptr<MapStage>> Create(
      const Attributes& attributes, const RowSpec& input) {
    RETURN_IF_ERROR(CheckImage(input));
    ASSIGN_OR_RETURN(const ImageSize size,
                     ReadImageSize(attributes.Ints("size")));
    ASSIGN_OR_RETURN(const RowSpec output, WithImageSize(input, size));
    const ImageSize src_size{input.shape.dim(1), input.shape.dim(2)};
    return std::make_unique<Resize>(output, Bilinear(src_size, size));
  }

  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     RowRandom* /*random*/) const override {
    if (output().dtype == UINT8) {
      ScalePlanes(RowValues<uint8_t>(src), RowValues<uint8_t>(dst));
    } else {
      ScalePlanes(RowValues<float>(src), RowValues<float>(dst));
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void ScalePlanes(absl::Span<const T> src, absl::Span<T> dst) const {
    const int64_t planes = output().shape.dim(0);
    const int64_t src_plane = static_cast<int64_t>(src.size()) / planes;
    const int64_t dst_plane = static_cast<int64_t>(dst.size()) / planes;
    for (int64_t c = 0; c < planes; ++c) {
      scaling_.Scale(src.data() + c * src_plane, dst.data() + c * dst_plane);
    }
  }

  const Bilinear scaling_;
};

[[maybe_unused]] const bool kRegistered = MapStageRegistry::Register(
    "resize", {"an image of another size, bilinear, as PyTorch's interpolate",
               {ImageSizeAttr("rows and columns")},
               &Resize::Create});

}  // namespace
}  // namespace muster
