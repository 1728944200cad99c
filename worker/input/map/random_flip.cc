#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "common/base/status_macros.h"
#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

// Turns each line of `width` values round.
template <typename T>
void FlipLines(absl::Span<const T> src, int64_t width, absl::Span<T> dst) {
  T* to = dst.data();
  for (const T* from = src.begin(); from != src.end(); from += width) {
    to = std::reverse_copy(from, from + width, to);
  }
}

class RandomFlip : public MapStage {
 public:
  RandomFlip(const RowSpec& output, double probability)
      : MapStage(output), probability_(probability) {}

  static absl::StatusOr<std::unique_ptr<MapStage>> Create(
      const Attributes& attributes, const RowSpec& input) {
    RETURN_IF_ERROR(CheckImage(input));
    return std::make_unique<RandomFlip>(input, attributes.Float("probability"));
  }

  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     RowRandom* random) const override {
    const int64_t width = output().shape.dim(2);
    if (random == nullptr || random->Uniform() >= probability_) {
      std::memcpy(dst.data(), src.data(), src.size());
    } else if (output().dtype == UINT8) {
      FlipLines(RowValues<uint8_t>(src), width, RowValues<uint8_t>(dst));
    } else {
      FlipLines(RowValues<float>(src), width, RowValues<float>(dst));
    }
    return absl::OkStatus();
  }

 private:
  const double probability_;
};

[[maybe_unused]] const bool kRegistered = MapStageRegistry::Register(
    "random_flip", {"turns an image round, left to right; training only",
                    {FloatAttr("probability", "fraction of images turned")
                         .AtLeast(0)
                         .AtMost(1)
                         .Default(0.5)},
                    &RandomFlip::Create});

}  // namespace
}  // namespace muster
