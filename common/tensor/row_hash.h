#ifndef COMMON_TENSOR_ROW_HASH_H_
#define COMMON_TENSOR_ROW_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/fingerprint.h"
#include "common/base/split_mix64.h"

namespace muster {

// A table's rows are in so many logical shards, which contiguous runs of belong
// to the ps tasks: another number of tasks moves runs, and no row changes its
// logical shard.
inline constexpr int kLogicalShards = 1024;

// The first logical shard of ps task `ps` of `num_ps`; that of `num_ps` is
// kLogicalShards.
constexpr int FirstLogicalShard(int ps, int num_ps) {
  return static_cast<int>(
      (static_cast<int64_t>(ps) * kLogicalShards + num_ps - 1) / num_ps);
}

// The ps task of `num_ps` that has a logical shard.
constexpr int PsOfLogicalShard(int logical_shard, int num_ps) {
  return static_cast<int>(static_cast<int64_t>(logical_shard) * num_ps /
                          kLogicalShards);
}

// The hash of one table's ids: every bit of an id turns half of the bits.
// Immutable.
class RowHash {
 public:
  explicit RowHash(absl::string_view table)
      : key_(SplitMix64(Fingerprint64(table))) {}

  uint64_t Of(int64_t id) const {
    return SplitMix64(static_cast<uint64_t>(id) ^ key_);
  }
  int LogicalShardOf(int64_t id) const {
    return static_cast<int>(Of(id) >> 54);
  }

 private:
  uint64_t key_;
};

}  // namespace muster

#endif  // COMMON_TENSOR_ROW_HASH_H_
