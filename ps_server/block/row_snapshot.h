#ifndef PS_SERVER_BLOCK_ROW_SNAPSHOT_H_
#define PS_SERVER_BLOCK_ROW_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ps_server/block/row_slabs.h"
#include "ps_server/block/shard_snapshot.h"

namespace muster {

// What a running ShardSnapshot has of one table that is not in its rows any
// more: a row is copied when it is first written, or goes, after Begin; of one
// that was made since, that it was not there. The logical shards are read in
// their order, and those before the one that is read need no copies. Room is
// that of the ShardSnapshot, which is to be passed unchanged. Not thread-safe.
class RowSnapshot {
 public:
  struct Copy {
    // As RowSlabs has them; null: there was no such row.
    std::unique_ptr<float[]> values;
    uint32_t updates = 0;
  };
  using Copies = absl::flat_hash_map<int64_t, Copy>;  // by id

  // Begins with the newest snapshot of `snapshot`, for so many logical shards.
  void Begin(const ShardSnapshot& snapshot, int num_shards);
  void Clear();

  // Whether it goes on; what it holds is freed if not.
  bool IsOf(const ShardSnapshot& snapshot);

  // To be called before the row of logical shard number `shard` is changed or
  // removed, and when one was made. Does nothing if it goes on no more.
  void Save(int shard, const RowSlabs& rows, uint32_t row,
            ShardSnapshot* snapshot);
  void SaveAbsent(int shard, int64_t id, ShardSnapshot* snapshot);

  // The first logical shard that is not passed, and passing all before `shard`.
  int passed() const { return passed_; }
  void PassTo(int shard, ShardSnapshot* snapshot);

  // REQUIRES: not passed.
  const Copies& copies(int shard) const { return shards_[shard].copies; }

 private:
  struct Shard {
    Copies copies;
    int64_t bytes = 0;
  };

  // The place of a copy; null if there is one, or none is wanted.
  Copy* Add(int shard, int64_t id, int64_t bytes, ShardSnapshot* snapshot);

  uint64_t id_ = 0;
  int passed_ = 0;
  std::vector<Shard> shards_;
};

}  // namespace muster

#endif  // PS_SERVER_BLOCK_ROW_SNAPSHOT_H_
