#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/map/image_size.h"
#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

class RandomCrop : public MapStage {
 public:
  RandomCrop(const RowSpec& output, const Shape& input, int64_t padding)
      : MapStage(output), input_(input), padding_(padding) {}

  static absl::StatusOr<std::unique_ptr<MapStage>> Create(
      const Attributes& attributes, const RowSpec& input) {
    RETURN_IF_ERROR(CheckImage(input));
    ImageSize size{input.shape.dim(1), input.shape.dim(2)};
    const int64_t padding = attributes.Int("padding");
    if (!attributes.Ints("size").empty()) {
      ASSIGN_OR_RETURN(size, ReadImageSize(attributes.Ints("size")));
    }
    if (size.rows > input.shape.dim(1) + 2 * padding ||
        size.columns > input.shape.dim(2) + 2 * padding) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a crop of [", size.rows, ", ", size.columns,
          "] must fit into the padded image, found ", input.ToString(),
          " with padding ", padding, "; take more padding or a resize"));
    }
    ASSIGN_OR_RETURN(const RowSpec output, WithImageSize(input, size));
    return std::make_unique<RandomCrop>(output, input.shape, padding);
  }

  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     RowRandom* random) const override {
    const int64_t rows = output().shape.dim(1);
    const int64_t free_rows = input_.dim(1) + 2 * padding_ - rows;
    const int64_t free_columns =
        input_.dim(2) + 2 * padding_ - output().shape.dim(2);
    // The crop's corner in the image, which begins inside the padding.
    const int64_t top =
        (random ? random->Below(free_rows + 1) : free_rows / 2) - padding_;
    const int64_t left =
        (random ? random->Below(free_columns + 1) : free_columns / 2) -
        padding_;
    const int64_t dst_line = LineBytes(output().shape);
    char* to = dst.data();
    for (int64_t c = 0; c < input_.dim(0); ++c) {
      for (int64_t y = top; y < top + rows; ++y, to += dst_line) {
        CopyLine(src.data(), c, y, left, to);
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t ValueBytes() const {
    return static_cast<int64_t>(SizeOf(output().dtype));
  }
  int64_t LineBytes(const Shape& shape) const {
    return shape.dim(2) * ValueBytes();
  }

  // Makes one line of the crop of line `y` of channel `c`, from column `left`
  // on; both may lie in the padding.
  void CopyLine(const char* src, int64_t c, int64_t y, int64_t left,
                char* to) const {
    const int64_t width = output().shape.dim(2);
    const bool is_padding = y < 0 || y >= input_.dim(1);
    // The crop's columns that are the image's: [begin, end).
    const int64_t begin =
        is_padding ? width : std::clamp<int64_t>(-left, 0, width);
    const int64_t end = std::clamp<int64_t>(input_.dim(2) - left, begin, width);
    const int64_t bytes = ValueBytes();
    std::memset(to, 0, begin * bytes);
    if (begin < end) {
      const char* line = src + (c * input_.dim(1) + y) * LineBytes(input_);
      std::memcpy(to + begin * bytes, line + (left + begin) * bytes,
                  (end - begin) * bytes);
    }
    std::memset(to + end * bytes, 0, (width - end) * bytes);
  }

  const Shape input_;
  const int64_t padding_;
};

[[maybe_unused]] const bool kRegistered = MapStageRegistry::Register(
    "random_crop",
    {"a part of an image at a random place; the middle one in evaluation",
     {ImageSizeAttr("rows and columns; [] is the image's size")
          .Default(std::vector<int64_t>{}),
      IntAttr("padding", "zeros around the image before the crop")
          .AtLeast(0)
          .AtMost(kMaxImageSide)
          .Default(int64_t{0})},
     &RandomCrop::Create});

}  // namespace
}  // namespace muster
