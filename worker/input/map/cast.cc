#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

class Cast : public MapStage {
 public:
  Cast(const RowSpec& output, DataType from, bool scale)
      : MapStage(output), from_(from) {
    for (size_t byte = 0; byte < values_.size(); ++byte) {
      const float value = static_cast<float>(byte);
      values_[byte] = scale ? value / 255.0f : value;
    }
  }

  static absl::StatusOr<std::unique_ptr<MapStage>> Create(
      const Attributes& attributes, const RowSpec& input) {
    return std::make_unique<Cast>(RowSpec{FLOAT32, input.shape}, input.dtype,
                                  attributes.Bool("scale"));
  }

  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     RowRandom* /*random*/) const override {
    if (from_ == FLOAT32) {
      std::copy(src.begin(), src.end(), dst.begin());
      return absl::OkStatus();
    }
    const absl::Span<const uint8_t> bytes = RowValues<uint8_t>(src);
    const absl::Span<float> values = RowValues<float>(dst);
    for (size_t i = 0; i < bytes.size(); ++i) values[i] = values_[bytes[i]];
    return absl::OkStatus();
  }

 private:
  const DataType from_;
  // The value of each byte: a division each is slower than a look.
  std::array<float, 256> values_;
};

[[maybe_unused]] const bool kRegistered = MapStageRegistry::Register(
    "cast", {"uint8 becomes float32; float32, which the readers give, stays",
             {BoolAttr("scale", "divide by 255, into [0, 1]").Default(true)},
             &Cast::Create});

}  // namespace
}  // namespace muster
