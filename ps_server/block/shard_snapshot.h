#ifndef PS_SERVER_BLOCK_SHARD_SNAPSHOT_H_
#define PS_SERVER_BLOCK_SHARD_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ps_server/block/tensor_blocks.h"

namespace muster {

// The shard's values at one instant, while training goes on: a block is copied
// when it is first written after Begin, and read where it lies until then.
// A copy is kept until End, also when it was read: a read whose reply was lost
// is repeated and must give the same bytes. The copies have a budget; a
// snapshot that would need more is given up. At most one snapshot at a time.
// Not thread-safe, but for Save.
class ShardSnapshot {
 public:
  // Starts a snapshot called `id` (not 0), which ends the one before. Its
  // copies take at most `max_bytes`.
  void Begin(uint64_t id, int64_t max_bytes);

  // Frees the copies. Does nothing if `id` is not the current snapshot.
  void End(uint64_t id);
  // Ends whatever snapshot there is.
  void Clear();

  // The snapshot's number; 0 if there is none.
  uint64_t id() const { return id_; }

  // Errors: Aborted, beginning with `what`, if `id` has ended or was given up.
  absl::Status Check(absl::string_view what, uint64_t id) const;

  // How many were given up.
  int64_t times_given_up() const { return times_given_up_; }

  // To be called before `block` of the tensor number `tensor_index` is changed
  // in any way, its count of updates too: Reserve makes room for a copy, or
  // gives the snapshot up if there is none; then Save copies, which may be
  // called from several threads at once, for each block by one of them.
  void Reserve(int tensor_index, const TensorBlocks& tensor, int64_t block);
  void Save(int tensor_index, const TensorBlocks& tensor, int64_t block);

  // Takes `bytes` of the room for copies, for something else; gives the
  // snapshot up, and returns false, if there is none. Give gives them back.
  bool Take(int64_t bytes);
  void Give(int64_t bytes) { copied_bytes_ -= bytes; }

  // Copies elements [offset, offset + length) of one stream of the tensor, as
  // they were at Begin, to `dst`. REQUIRES: a snapshot, a range inside.
  void Read(int tensor_index, const TensorBlocks& tensor, int stream,
            int64_t offset, int64_t length, float* dst) const;

  // The count of updates of `block` at Begin. REQUIRES: a snapshot.
  int64_t Updates(int tensor_index, const TensorBlocks& tensor,
                  int64_t block) const;

  // The bytes of the blocks that Reserve has made room for, and those taken.
  int64_t copied_bytes() const { return copied_bytes_; }

 private:
  struct SavedBlock {
    // The streams, one after another; not set before is_saved.
    std::unique_ptr<float[]> values;
    bool is_saved = false;
    int64_t updates = 0;
  };

  void GiveUp();

  uint64_t id_ = 0;
  int64_t max_bytes_ = 0;
  // The copies, by (tensor, block).
  std::map<std::pair<int, int64_t>, SavedBlock> saved_;
  int64_t copied_bytes_ = 0;

  // The last one that was given up; 0 if none was.
  uint64_t given_up_ = 0;
  int64_t times_given_up_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_BLOCK_SHARD_SNAPSHOT_H_
