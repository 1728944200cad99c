#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/map/map_stage.h"

namespace muster {
namespace {

// The most classes that an attribute may ask for: more would be a mistake.
constexpr int64_t kMaxClasses = int64_t{1} << 20;

class OneHot : public MapStage {
 public:
  OneHot(const RowSpec& output, DataType src_dtype, int64_t classes)
      : MapStage(output), src_dtype_(src_dtype), classes_(classes) {}

  static absl::StatusOr<std::unique_ptr<MapStage>> Create(
      const Attributes& attributes, const RowSpec& input) {
    if (input.is_image()) {
      return absl::InvalidArgumentError(
          absl::StrCat("needs rows [n], found ", input.ToString()));
    }
    const int64_t classes = attributes.Int("classes");
    ASSIGN_OR_RETURN(const Shape table,
                     Shape::Create({input.shape.dim(0), classes}));
    return std::make_unique<OneHot>(
        RowSpec{FLOAT32, Shape{table.num_elements()}}, input.dtype, classes);
  }

  absl::Status Apply(absl::Span<const char> src, absl::Span<char> dst,
                     RowRandom* /*random*/) const override {
    return src_dtype_ == UINT8 ? Encode(RowValues<uint8_t>(src), dst)
                               : Encode(RowValues<float>(src), dst);
  }

 private:
  template <typename T>
  absl::Status Encode(absl::Span<const T> src, absl::Span<char> dst) const {
    const absl::Span<float> values = RowValues<float>(dst);
    std::fill(values.begin(), values.end(), 0.0f);
    for (size_t i = 0; i < src.size(); ++i) {
      const double value = src[i];
      // Written so that NaN is refused, and nothing that does not fit is cast.
      const bool is_class = value >= 0 &&
                            value < static_cast<double>(classes_) &&
                            value == static_cast<int64_t>(value);
      if (!is_class) {
        return absl::InvalidArgumentError(
            absl::StrCat("value ", i,
                         " of the row must be a whole number in "
                         "[0, ",
                         classes_, "), found ", value));
      }
      values[i * classes_ + static_cast<size_t>(value)] = 1.0f;
    }
    return absl::OkStatus();
  }

  const DataType src_dtype_;
  const int64_t classes_;
};

[[maybe_unused]] const bool kRegistered = MapStageRegistry::Register(
    "one_hot", {"each value, a class, becomes a 1 at its place among zeros",
                {IntAttr("classes", "float32 values in the place of each value")
                     .AtLeast(1)
                     .AtMost(kMaxClasses)},
                &OneHot::Create});

}  // namespace
}  // namespace muster
