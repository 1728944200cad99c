#ifndef COMMON_CODEC_CODEC_H_
#define COMMON_CODEC_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/registry.h"
#include "common/codec/value_format.h"

namespace muster {

// How float32 values of gradients and parameters lie on the wire. A codec takes
// the same number of bytes for every value and encodes each by itself, so that
// a part can be decoded from any value on. Immutable and thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  // As PushPart.codec and PullRequest.codec name it.
  virtual absl::string_view name() const = 0;
  virtual ValueFormat format() const = 0;
  // |decoded - value| <= relative_error() * |value| + absolute_error() for
  // every value up to largest(), a larger finite one becomes largest(), with
  // its sign; infinities and NaN stay what they are.
  virtual double relative_error() const = 0;
  virtual double absolute_error() const = 0;
  virtual double largest() const = 0;

  // Neither pointer needs an alignment. The same values give the same bytes on
  // every machine. `encoded` has n * BytesPerValue(format()) bytes.
  virtual void Encode(const float* values, int64_t n, char* encoded) const = 0;
  virtual void Decode(const char* encoded, int64_t n, float* values) const = 0;
  // The index of the first value that is NaN or infinite, or -1.
  virtual int64_t FirstNonFinite(const char* encoded, int64_t n) const = 0;
};

// Codecs by name; each is one source file and one line in codecs.bzl.
struct CodecTag {
  static constexpr char kKind[] = "codec";
};
using CodecRegistry = Registry<CodecTag, const Codec*>;

// The codec of that name; null for "", which is float32 as it is.
// Errors: NotFound with the nearest and all known names.
absl::StatusOr<const Codec*> FindCodec(absl::string_view name);

// The bytes of n values: 4 each without a codec.
int64_t EncodedBytes(const Codec* codec, int64_t n);

// How the values lie that `codec` has encoded: kFloat32 without one.
ValueFormat FormatOf(const Codec* codec);

}  // namespace muster

#endif  // COMMON_CODEC_CODEC_H_
