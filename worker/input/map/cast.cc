#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/status_macros.h"
#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

class Cast : public MapStage {
 public:
  Cast(const RowSpec& output, bool scale) : MapStage(output) {
    for (size_t byte = 0; byte < values_.size(); ++byte) {
      const float value = static_cast<float>(byte);
      values_[byte] = scale ? value / 255.0f : value;
    }
  }

  static absl::StatusOr<std::unique_ptr<MapStage>> Create(
      const Attributes& attributes, const RowSpec& input) {
    RETURN_IF_ERROR(CheckDtype(input, UINT8));
    return std::make_unique<Cast>(RowSpec{FLOAT32, input.shape},
                                  attributes.Bool("scale"));
  }

  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     RowRandom* /*random*/) const override {
    const absl::Span<const uint8_t> bytes = RowValues<uint8_t>(src);
    const absl::Span<float> values = RowValues<float>(dst);
    for (size_t i = 0; i < bytes.size(); ++i) values[i] = values_[bytes[i]];
    return absl::OkStatus();
  }

 private:
  // The value of each byte: a division each is slower than a look.
  std::array<float, 256> values_;
};

[[maybe_unused]] const bool kRegistered = MapStageRegistry::Register(
    "cast", {"uint8 becomes float32",
             {BoolAttr("scale", "divide by 255, into [0, 1]").Default(true)},
             &Cast::Create});

}  // namespace
}  // namespace muster
