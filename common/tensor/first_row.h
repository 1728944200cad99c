#ifndef COMMON_TENSOR_FIRST_ROW_H_
#define COMMON_TENSOR_FIRST_ROW_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/base/split_mix64.h"
#include "common/tensor/row_hash.h"
#include "proto/table.pb.h"

namespace muster {

// The first values of a table's rows: ZEROS, or UNIFORM in [-scale, scale), a
// function of (seed, table, id, element) by a counter-based generator
// (SplitMix64) and without libm, so that they are the same bits on every
// machine, in any order of arrival, and again after a row was evicted.
// Immutable.
class FirstRow {
 public:
  explicit FirstRow(const TableDef& table)
      : key_(SplitMix64(table.seed() + kSplitMix64Step) ^
             RowHash(table.name()).Of(0)),
        scale_(table.initial() == ZEROS ? 0 : table.scale()) {}

  // Writes the row's values, all `dim` of them.
  void Fill(int64_t id, absl::Span<float> values) const {
    uint64_t counter = SplitMix64(key_ + static_cast<uint64_t>(id));
    for (float& value : values) {
      counter += kSplitMix64Step;
      // 24 bits are exact as a float, and so is the difference.
      const auto bits = static_cast<int32_t>(SplitMix64(counter) >> 40);
      value = scale_ * (static_cast<float>(bits - (1 << 23)) / (1 << 23));
    }
  }

 private:
  const uint64_t key_;
  const float scale_;
};

}  // namespace muster

#endif  // COMMON_TENSOR_FIRST_ROW_H_
