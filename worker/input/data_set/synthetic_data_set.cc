#include "worker/input/data_set/synthetic_data_set.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/data_set_registry.h"

namespace muster {
namespace {

// Prototypes are kept in memory: at most 1 GiB.
constexpr int64_t kMaxPrototypeElements = int64_t{1} << 28;

// 16 bits as a fraction in [0, 1): with the weights 3/4 and 1/4 every product
// and sum below is exact in float32, so that no compiler can round otherwise.
float Fraction(uint64_t bits) {
  return static_cast<float>(bits >> 48) * (1.0f / 65536.0f);
}
constexpr float kPrototypeWeight = 0.75f;
constexpr float kNoiseWeight = 0.25f;

// The field's value, or `fallback` for 0.
absl::StatusOr<int64_t> Positive(absl::string_view field, int64_t value,
                                 int64_t fallback) {
  if (value == 0) return fallback;
  if (value > 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("input.", field, ": wanted a positive number (or 0 for ",
                   fallback, "), found ", value));
}

std::vector<float> MakePrototypes(int64_t elements, uint64_t seed) {
  const CounterRandom random(seed, "synthetic/prototypes");
  std::vector<float> prototypes(elements);
  for (int64_t i = 0; i < elements; ++i) {
    prototypes[i] = kPrototypeWeight * Fraction(random.Bits(i));
  }
  return prototypes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataSet>> SyntheticDataSet::Create(
    const DataSetRequest& request) {
  const InputSpec& spec = request.spec;
  const Shape& shape = request.example_shape;
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
  const int64_t elements = shape.num_elements();
  if (elements < 1 || classes > kMaxPrototypeElements / elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.synthetic_classes: wanted 1 to ", kMaxPrototypeElements,
        " values in all classes together, found ", classes,
        " classes of shape ", shape.ToString()));
  }
  return std::unique_ptr<DataSet>(new SyntheticDataSet(
      shape, request.split == Split::kTrain ? train_examples : test_examples,
      classes, request.seed, request.split));
}

SyntheticDataSet::SyntheticDataSet(const Shape& example_shape,
                                   int64_t num_examples, int64_t num_classes,
                                   uint64_t seed, Split split)
    : example_shape_(example_shape),
      example_elements_(example_shape.num_elements()),
      num_examples_(num_examples),
      num_classes_(num_classes),
      labels_(seed, split == Split::kTrain ? "synthetic/train/labels"
                                           : "synthetic/test/labels"),
      noise_(seed, split == Split::kTrain ? "synthetic/train/noise"
                                          : "synthetic/test/noise"),
      prototypes_(MakePrototypes(num_classes * example_elements_, seed)) {}

absl::Status SyntheticDataSet::Read(int64_t index,
                                    const ExampleMemory& into) const {
  const int64_t chosen = labels_.Bits(index) % num_classes_;
  const float* prototype = prototypes_.data() + chosen * example_elements_;
  const uint64_t first = static_cast<uint64_t>(index) * example_elements_;
  for (int64_t i = 0; i < example_elements_; ++i) {
    into.values[i] =
        prototype[i] + kNoiseWeight * Fraction(noise_.Bits(first + i));
  }
  if (into.label != nullptr) *into.label = static_cast<int32_t>(chosen);
  return absl::OkStatus();
}

namespace {

[[maybe_unused]] const bool kRegistered = DataSetRegistry::Register(
    "synthetic", WholeType("examples made by a formula, of any shape",
                           &SyntheticDataSet::Create));

}  // namespace
}  // namespace muster
