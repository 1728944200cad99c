#include "worker/input/data_set/example_image.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/image/image_decoder.h"

namespace muster {
namespace {

// byte / 255, which takes longer to compute than to look up.
std::array<float, 256> MakeFractions() {
  std::array<float, 256> fractions;
  for (size_t i = 0; i < fractions.size(); ++i) {
    fractions[i] = static_cast<float>(i) / 255.0f;
  }
  return fractions;
}

// [H, W, C] of bytes to [C, H, W] of byte / 255.
void ToPlanes(absl::Span<const uint8_t> pixels, size_t channels, float* dst) {
  static const std::array<float, 256> fractions = MakeFractions();
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = c; i < pixels.size(); i += channels) {
      *dst++ = fractions[pixels[i]];
    }
  }
}

}  // namespace

struct ExampleImage::Work {
  std::optional<ImageDecoder> decoder;
  // The options that the decoder was made with.
  ImageDecoder::Options made_for;
};

absl::StatusOr<ExampleImage> ExampleImage::Create(const Shape& shape,
                                                  const InputSpec& spec) {
  if (shape.rank() == 3 && (shape.dim(0) == 1 || shape.dim(0) == 3) &&
      std::max(shape.dim(1), shape.dim(2)) <= kMaxPixels) {
    return ExampleImage(shape, spec);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: images are [channels, height, width] with 1 or 3 "
      "channels, model.input_shape (or input.shape) is ",
      shape.ToString()));
}

absl::Status ExampleImage::PrepareDecoder(Work* work) const {
  ImageDecoder::Options options;
  options.channels = static_cast<int>(shape_.dim(0));
  options.decode = decode_;
  if (scales_) {
    options.height = static_cast<int>(shape_.dim(1));
    options.width = static_cast<int>(shape_.dim(2));
  }
  const ImageDecoder::Options& made = work->made_for;
  if (work->decoder.has_value() && made.channels == options.channels &&
      made.height == options.height && made.width == options.width &&
      made.decode == options.decode) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(ImageDecoder decoder, ImageDecoder::Create(options));
  work->decoder.emplace(std::move(decoder));
  work->made_for = options;
  return absl::OkStatus();
}

absl::Status ExampleImage::Decode(absl::Span<const uint8_t> file,
                                  float* example) const {
  thread_local Work work;
  RETURN_IF_ERROR(PrepareDecoder(&work));
  ASSIGN_OR_RETURN(const DecodedImage image, work.decoder->Decode(file));
  const int64_t rows = shape_.dim(1);
  const int64_t columns = shape_.dim(2);
  if (image.height != rows || image.width != columns) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted an image as large as model.input_shape, ", columns,
                     " x ", rows, ", found ", image.width, " x ", image.height,
                     "; --set=input.shape=", image.channels, ",", rows, ",",
                     columns, " scales all images to that size"));
  }
  ToPlanes(image.pixels, static_cast<size_t>(image.channels), example);
  return absl::OkStatus();
}

}  // namespace muster
