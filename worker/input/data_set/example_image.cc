#include "worker/input/data_set/example_image.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/map/map_chain.h"
#include "worker/input/map/row_spec.h"

namespace muster {

struct ExampleImage::Work {
  std::optional<ImageDecoder> decoder;
  // The options that the decoder was made with: channels, height, width.
  std::vector<int> made_for;
  std::vector<uint8_t> resized;
};

namespace {

// The image's pixels in the size of `shape`, in `resized`.
absl::Status Resize(const DecodedImage& image, const Shape& shape,
                    std::vector<uint8_t>* resized) {
  MapStageSpec resize;
  resize.type = "resize";
  Attr* const size = resize.attrs.Add();
  size->set_name("size");
  size->mutable_list()->add_v(shape.dim(1));
  size->mutable_list()->add_v(shape.dim(2));
  const RowSpec found{UINT8, Shape({shape.dim(0), image.height, image.width})};
  ASSIGN_OR_RETURN(const MapChain chain, MapChain::Create({resize}, found));
  resized->resize(chain.output().num_bytes());
  MapChain::Scratch scratch = chain.MakeScratch();
  return chain.Apply(
      {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()},
      {reinterpret_cast<char*>(resized->data()), resized->size()}, std::nullopt,
      &scratch);
}

}  // namespace

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
  const int64_t height = shape_.dim(1);
  const int64_t width = shape_.dim(2);
  if (image.height == height && image.width == width) {
    ScaleBytes(image.pixels, example);
    return absl::OkStatus();
  }
  if (!scales_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted an image as large as model.input_shape, ", width, " x ", height,
        ", found ", image.width, " x ", image.height,
        "; input.shape: [channels, height, width] scales all images to one "
        "size"));
  }
  RETURN_IF_ERROR(Resize(image, shape_, &work.resized));
  ScaleBytes(work.resized, example);
  return absl::OkStatus();
}

}  // namespace muster
