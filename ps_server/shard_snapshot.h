#ifndef PS_SERVER_SHARD_SNAPSHOT_H_
#define PS_SERVER_SHARD_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ps_server/tensor_blocks.h"

namespace muster {

// The shard's values at one instant, while training goes on: a block is copied
// when it is first written after Begin, and read where it lies until then.
// A copy is kept until End, also when it was read: a read whose reply was lost
// is repeated and must give the same bytes. At worst the copies are as large
// as the shard. At most one snapshot at a time. Not thread-safe.
class ShardSnapshot {
 public:
  // Starts a snapshot called `id` (not 0), which ends the one before.
  void Begin(uint64_t id);

  // Frees the copies. Does nothing if `id` is not the current snapshot.
  void End(uint64_t id);
  // Ends whatever snapshot there is.
  void Clear();

  // 0 if there is none.
  uint64_t id() const { return id_; }

  // To be called before `block` of the tensor number `tensor_index` is changed
  // in any way.
  void BeforeWrite(int tensor_index, const TensorBlocks& tensor, int64_t block);

  // Copies elements [offset, offset + length) of one stream of the tensor, as
  // they were at Begin, to `dst`. REQUIRES: a snapshot, a range inside.
  void Read(int tensor_index, const TensorBlocks& tensor, int stream,
            int64_t offset, int64_t length, float* dst) const;

  // The count of updates of `block` at Begin. REQUIRES: a snapshot.
  int64_t Updates(int tensor_index, const TensorBlocks& tensor,
                  int64_t block) const;

  int64_t copied_bytes() const { return copied_bytes_; }

 private:
  struct SavedBlock {
    std::vector<float> streams;  // one after another
    int64_t updates;
  };

  uint64_t id_ = 0;
  // By (tensor, block).
  std::map<std::pair<int, int64_t>, SavedBlock> saved_;
  int64_t copied_bytes_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_SNAPSHOT_H_
