#include "worker/input/data_set/split_data_set.h"

#include <cassert>
#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/fingerprint.h"
#include "worker/layer/counter_random.h"

namespace muster {
namespace {

absl::string_view NameOf(Split split) {
  return split == Split::kTest ? "test" : "training";
}

uint64_t KeyOf(const DataSet& whole, absl::string_view dir, int64_t row) {
  const std::string name = whole.RowName(row);
  if (name.empty()) return static_cast<uint64_t>(row);
  absl::string_view below = name;
  absl::ConsumePrefix(&below, dir);
  return Fingerprint64(absl::StripPrefix(below, "/"));
}

}  // namespace

bool IsTestRow(double test_fraction, uint64_t seed, uint64_t row) {
  assert(test_fraction > 0 && test_fraction < 1);
  const auto below = static_cast<uint64_t>(std::ldexp(test_fraction, 64));
  return CounterRandom(seed, "input.test_fraction").Bits(row) < below;
}

absl::StatusOr<std::unique_ptr<SplitDataSet>> SplitDataSet::Create(
    std::unique_ptr<DataSet> whole, absl::string_view dir, double test_fraction,
    uint64_t seed, Split split) {
  auto half = absl::WrapUnique(
      new SplitDataSet(std::move(whole), test_fraction, seed, split));
  const int64_t rows = half->whole_->num_examples();
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t key = KeyOf(*half->whole_, dir, row);
    if (IsTestRow(test_fraction, seed, key) == (split == Split::kTest)) {
      half->rows_.push_back(row);
    }
  }
  if (!half->rows_.empty()) return half;
  return absl::InvalidArgumentError(
      absl::StrCat("input.test_fraction: ", test_fraction, " of ", rows,
                   " rows leaves none for the ", NameOf(split),
                   " half: give another fraction, or files of a test half"));
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
  *(split_ == Split::kTest ? schema.mutable_test()
                           : schema.mutable_training()) = half;
  schema.set_test_fraction(test_fraction_);
  schema.set_split_seed(seed_);
  return schema;
}

std::vector<std::string> SplitDataSet::Remarks() const {
  std::vector<std::string> remarks = whole_->Remarks();
  remarks.push_back(absl::StrCat(
      "input.test_fraction is ", test_fraction_, ": ", num_examples(), " of ",
      whole_->num_examples(), " rows are the ", NameOf(split_), " half"));
  return remarks;
}

}  // namespace muster
