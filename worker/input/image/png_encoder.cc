#include "worker/input/image/png_encoder.h"

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "spng.h"

namespace muster {
namespace {

// The largest side that the format allows.
constexpr int64_t kMaxPngSide = INT32_MAX;

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};

struct FreeBytes {
  void operator()(void* bytes) const { std::free(bytes); }
};

absl::Status CheckImage(const ImagePixels& image) {
  const auto is_side = [](int64_t side) {
    return side >= 1 && side <= kMaxPngSide;
  };
  if (is_side(image.height) && is_side(image.width) &&
      (image.channels == 1 || image.channels == 3) &&
      static_cast<size_t>(image.height) * static_cast<size_t>(image.width) *
              static_cast<size_t>(image.channels) ==
          image.values.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "encoding a PNG: wanted [height, width, 1 or 3] pixels, found [",
      image.height, ", ", image.width, ", ", image.channels, "] with ",
      image.values.size(), " values"));
}

absl::Status EncodingError(int error) {
  const std::string message =
      absl::StrCat("encoding a PNG: ", spng_strerror(error));
  if (error == SPNG_EMEM) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

int Encode(const ImagePixels& image, spng_ctx* context) {
  spng_ihdr header = {};
  header.height = static_cast<uint32_t>(image.height);
  header.width = static_cast<uint32_t>(image.width);
  header.bit_depth = 8;
  header.color_type = image.channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE
                                          : SPNG_COLOR_TYPE_TRUECOLOR;
  int error = spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  if (error == 0) error = spng_set_ihdr(context, &header);
  if (error != 0) return error;
  return spng_encode_image(context, image.values.data(), image.values.size(),
                           SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
}

}  // namespace

absl::StatusOr<std::string> EncodePng(const ImagePixels& image) {
  RETURN_IF_ERROR(CheckImage(image));
  const std::unique_ptr<spng_ctx, FreeContext> context(
      spng_ctx_new(SPNG_CTX_ENCODER));
  if (context == nullptr) return EncodingError(SPNG_EMEM);
  int error = Encode(image, context.get());
  if (error != 0) return EncodingError(error);
  size_t size = 0;
  const std::unique_ptr<void, FreeBytes> bytes(
      spng_get_png_buffer(context.get(), &size, &error));
  if (bytes == nullptr) return EncodingError(error);
  return std::string(static_cast<const char*>(bytes.get()), size);
}

}  // namespace muster
