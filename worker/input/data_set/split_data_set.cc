#include "worker/input/data_set/split_data_set.h"

#include <cassert>
#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/fingerprint.h"
#include "worker/layer/counter_random.h"

namespace muster {
namespace {

// "input.test_fraction is 0.1": those that make the half.
std::string Describe(const SplitFractions& fractions, Split half) {
  std::vector<std::string> parts;
  if (fractions.test > 0 && half != Split::kValidation) {
    parts.push_back(absl::StrCat("input.test_fraction is ", fractions.test));
  }
  if (fractions.validation > 0 && half != Split::kTest) {
    parts.push_back(
        absl::StrCat("input.validation_fraction is ", fractions.validation));
  }
  return absl::StrJoin(parts, ", ");
}

uint64_t KeyOf(const DataSet& whole, absl::string_view dir, int64_t row) {
  const std::string name = whole.RowName(row);
  if (name.empty()) return static_cast<uint64_t>(row);
  absl::string_view below = name;
  absl::ConsumePrefix(&below, dir);
  return Fingerprint64(absl::StripPrefix(below, "/"));
}

}  // namespace

Split HalfOfRow(const SplitFractions& fractions, uint64_t seed, uint64_t row) {
  const double both = fractions.test + fractions.validation;
  assert(fractions.test >= 0 && fractions.validation >= 0 && both < 1);
  const uint64_t bits = CounterRandom(seed, "input.test_fraction").Bits(row);
  const auto is_below = [bits](double fraction) {
    return bits < static_cast<uint64_t>(std::ldexp(fraction, 64));
  };
  if (is_below(fractions.test)) return Split::kTest;
  return is_below(both) ? Split::kValidation : Split::kTrain;
}

absl::StatusOr<std::unique_ptr<SplitDataSet>> SplitDataSet::Create(
    std::unique_ptr<DataSet> whole, absl::string_view dir,
    const SplitFractions& fractions, uint64_t seed, Split split) {
  auto half = absl::WrapUnique(
      new SplitDataSet(std::move(whole), fractions, seed, split));
  const int64_t rows = half->whole_->num_examples();
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t key = KeyOf(*half->whole_, dir, row);
    if (HalfOfRow(fractions, seed, key) == split) half->rows_.push_back(row);
  }
  if (!half->rows_.empty()) return half;
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(fractions, split), ": that of ", rows,
                   " rows leaves none for the ", HalfName(split),
                   " half; give another fraction",
                   split == Split::kTest ? ", or files of a test half" : ""));
}

std::string SplitDataSet::RowName(int64_t index) const {
  const int64_t row = rows_[index];
  const std::string name = whole_->RowName(row);
  return name.empty() ? absl::StrCat(row) : name;
}

DataSchema SplitDataSet::Schema() const {
  DataSchema schema = whole_->Schema();
  DataHalf half = schema.training();
  half.set_rows(num_examples());
  if (half.has_files()) half.mutable_files()->set_examples(num_examples());
  schema.clear_training();
  *(split_ == Split::kTrain  ? schema.mutable_training()
    : split_ == Split::kTest ? schema.mutable_test()
                             : schema.mutable_validation()) = half;
  schema.set_test_fraction(fractions_.test);
  schema.set_validation_fraction(fractions_.validation);
  schema.set_split_seed(seed_);
  return schema;
}

std::vector<std::string> SplitDataSet::Remarks() const {
  std::vector<std::string> remarks = whole_->Remarks();
  remarks.push_back(absl::StrCat(Describe(fractions_, split_), ": ",
                                 num_examples(), " of ", whole_->num_examples(),
                                 " rows are the ", HalfName(split_), " half"));
  return remarks;
}

}  // namespace muster
