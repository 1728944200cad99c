#include "worker/input/data_set/example_image.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/map/bilinear.h"
#include "worker/input/map/image_size.h"

namespace muster {

struct ExampleImage::Work {
  std::optional<ImageDecoder> decoder;
  // The options that the decoder was made with: channels, height, width.
  std::vector<int> made_for;
  // The last image's.
  std::optional<Bilinear> scaling;
};

absl::StatusOr<ExampleImage> ExampleImage::Create(const Shape& shape,
                                                  bool scales) {
  if (shape.rank() == 3 && (shape.dim(0) == 1 || shape.dim(0) == 3) &&
      std::max(shape.dim(1), shape.dim(2)) <= kMaxPixels) {
    return ExampleImage(shape, scales);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: images are [channels, height, width] with 1 or 3 "
      "channels, model.input_shape (or input.shape) is ",
      shape.ToString()));
}

absl::Status ExampleImage::PrepareDecoder(Work* work) const {
  ImageDecoder::Options options;
  options.channels = static_cast<int>(shape_.dim(0));
  if (scales_) {
    options.min_height = static_cast<int>(shape_.dim(1));
    options.min_width = static_cast<int>(shape_.dim(2));
  }
  const int wanted[] = {options.channels, options.min_height,
                        options.min_width};
  if (work->decoder.has_value() &&
      std::equal(work->made_for.begin(), work->made_for.end(), wanted)) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(ImageDecoder decoder, ImageDecoder::Create(options));
  work->decoder.emplace(std::move(decoder));
  work->made_for.assign(std::begin(wanted), std::end(wanted));
  return absl::OkStatus();
}

absl::Status ExampleImage::Decode(absl::Span<const uint8_t> file,
                                  float* example) const {
  thread_local Work work;
  RETURN_IF_ERROR(PrepareDecoder(&work));
  ASSIGN_OR_RETURN(const DecodedImage image, work.decoder->Decode(file));
  const ImageSize found{image.height, image.width};
  const ImageSize wanted{shape_.dim(1), shape_.dim(2)};
  if (!scales_ && found != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted an image as large as model.input_shape, ", wanted.columns,
        " x ", wanted.rows, ", found ", image.width, " x ", image.height,
        "; input.shape: [channels, height, width] scales all images to one "
        "size"));
  }
  if (!work.scaling.has_value() || work.scaling->src_size() != found ||
      work.scaling->dst_size() != wanted) {
    work.scaling.emplace(found, wanted);
  }
  work.scaling->ScaleToExample(image.pixels.data(), image.channels, example);
  return absl::OkStatus();
}

}  // namespace muster
