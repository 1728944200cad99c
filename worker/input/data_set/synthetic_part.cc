#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/layer/counter_random.h"

namespace muster {
namespace {

constexpr int64_t kDefaultExamples = 10000;
constexpr int64_t kDefaultTestExamples = 1000;
constexpr int64_t kDefaultClasses = 10;

// Prototypes are kept in memory: at most 1 GiB.
constexpr int64_t kMaxPrototypeElements = int64_t{1} << 28;

// 16 bits as a fraction in [0, 1): with the weights 3/4 and 1/4 every product
// and sum below is exact in float32, so that no compiler can round otherwise.
float Fraction(uint64_t bits) {
  return static_cast<float>(bits >> 48) * (1.0f / 65536.0f);
}
constexpr float kPrototypeWeight = 0.75f;
constexpr float kNoiseWeight = 0.25f;

// Examples made by a formula (README.md): the prototype of the class plus
// noise, so that a linear model learns them. The same seed gives the same bits
// on every machine.
class SyntheticPart : public Part {
 public:
  static absl::StatusOr<std::unique_ptr<Part>> Open(
      const DataSetRequest& request, const PartFiles& files,
      absl::Span<const Column> known);

  std::optional<int64_t> num_rows() const override { return num_rows_; }
  absl::Status Read(int64_t row, absl::Span<const size_t> wanted,
                    Row* into) const override;

 private:
  SyntheticPart(const DataSetRequest& request, int64_t num_rows,
                int64_t num_classes);

  const int64_t num_rows_;
  const int64_t elements_;
  const CounterRandom labels_;
  const CounterRandom noise_;
  // [num_classes, elements_], already weighted.
  std::vector<float> prototypes_;
};

// The field's value, or `fallback` for 0.
absl::StatusOr<int64_t> Positive(absl::string_view field, int64_t value,
                                 int64_t fallback) {
  if (value == 0) return fallback;
  if (value > 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("input.", field, ": wanted a positive number (or 0 for ",
                   fallback, "), found ", value));
}

absl::StatusOr<std::unique_ptr<Part>> SyntheticPart::Open(
    const DataSetRequest& request, const PartFiles& /*files*/,
    absl::Span<const Column> /*known*/) {
  const InputSpec& spec = request.spec;
  ASSIGN_OR_RETURN(const int64_t train_examples,
                   Positive("synthetic_examples", spec.synthetic_examples(),
                            kDefaultExamples));
  ASSIGN_OR_RETURN(
      const int64_t test_examples,
      Positive("synthetic_test_examples", spec.synthetic_test_examples(),
               kDefaultTestExamples));
  ASSIGN_OR_RETURN(
      const int64_t classes,
      Positive("synthetic_classes", spec.synthetic_classes(), kDefaultClasses));
  const int64_t elements = request.example_shape.num_elements();
  if (elements < 1 || classes > kMaxPrototypeElements / elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.synthetic_classes: wanted 1 to ", kMaxPrototypeElements,
        " values in all classes together, found ", classes,
        " classes of shape ", request.example_shape.ToString()));
  }
  return absl::WrapUnique(new SyntheticPart(
      request, request.split == Split::kTrain ? train_examples : test_examples,
      classes));
}

SyntheticPart::SyntheticPart(const DataSetRequest& request, int64_t num_rows,
                             int64_t num_classes)
    : Part({}, {{"example",
                 ColumnKind::kNumber,
                 {{request.example_shape.num_elements()}}},
                {"label",
                 ColumnKind::kInteger,
                 {{}},
                 /*channels_first=*/false,
                 num_classes}}),
      num_rows_(num_rows),
      elements_(request.example_shape.num_elements()),
      labels_(request.seed, request.split == Split::kTrain
                                ? "synthetic/train/labels"
                                : "synthetic/test/labels"),
      noise_(request.seed, request.split == Split::kTrain
                               ? "synthetic/train/noise"
                               : "synthetic/test/noise") {
  const CounterRandom random(request.seed, "synthetic/prototypes");
  prototypes_.resize(num_classes * elements_);
  for (size_t i = 0; i < prototypes_.size(); ++i) {
    prototypes_[i] = kPrototypeWeight * Fraction(random.Bits(i));
  }
}

absl::Status SyntheticPart::Read(int64_t row,
                                 absl::Span<const size_t> /*wanted*/,
                                 Row* into) const {
  const int64_t chosen = labels_.Bits(row) % columns()[1].num_classes;
  const float* prototype = prototypes_.data() + chosen * elements_;
  const uint64_t first = static_cast<uint64_t>(row) * elements_;
  const absl::Span<float> span = into->MakeNumbers(elements_);
  float* const numbers = span.data();
  for (int64_t i = 0; i < elements_; ++i) {
    numbers[i] = prototype[i] + kNoiseWeight * Fraction(noise_.Bits(first + i));
  }
  into->cells[0] = absl::Span<const float>(span);
  into->cells[1] = into->MakeInteger(chosen);
  return absl::OkStatus();
}

DataSetType MakeType() {
  DataSetType type;
  type.help = "examples made by a formula, of any shape";
  type.open = &SyntheticPart::Open;
  return type;
}

[[maybe_unused]] const bool kRegistered =
    DataSetRegistry::Register("synthetic", MakeType());

}  // namespace
}  // namespace muster
