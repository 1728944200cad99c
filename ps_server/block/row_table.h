#ifndef PS_SERVER_BLOCK_ROW_TABLE_H_
#define PS_SERVER_BLOCK_ROW_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/first_row.h"
#include "common/tensor/row_hash.h"
#include "proto/table.pb.h"
#include "ps_server/block/row_slabs.h"
#include "ps_server/block/row_snapshot.h"
#include "ps_server/block/shard_snapshot.h"

namespace muster {

// The rows of one table that a ps task has: those of a run of logical shards,
// each found by its id. A row is values, the slots of the table's rule, and its
// own count of updates; the first update makes it. Where the table has
// max_rows, a logical shard that is full loses the row that was updated longest
// ago (of those of one update, the smallest id) when another one is made. Not
// thread-safe. Movable, not copyable.
class RowTable {
 public:
  // An update of the model, of which rows have their part.
  struct ModelUpdate {
    // Those before it.
    int64_t updates = 0;
    double rate_factor = 1;
  };
  // Rows of a snapshot. `values`: those of each row, then each slot; valid
  // until the next change. No `next`: nothing follows.
  struct SnapshotRows {
    std::vector<int64_t> ids;
    std::vector<int64_t> updates;
    std::vector<const float*> values;
    std::optional<RowCursor> next;
  };

  // REQUIRES: `def` was checked, its rule is `rule`.
  RowTable(const TableDef& def, std::unique_ptr<UpdateRule> rule,
           int first_logical_shard, int end_logical_shard);

  const TableDef& def() const { return def_; }
  int64_t dim() const { return def_.dim(); }
  const RowHash& hash() const { return keys_->hash; }
  absl::Span<const SlotDef> slots() const { return rule_->slots(); }
  // Values and slots.
  int64_t floats_per_row() const { return keys_->rows.floats_per_row(); }
  int first_logical_shard() const { return first_shard_; }
  int end_logical_shard() const { return first_shard_ + num_shards(); }
  bool Has(int64_t id) const;

  int64_t rows() const { return keys_->rows.rows(); }
  // All of their memory.
  int64_t bytes() const { return BytesWith(0); }
  // The same with so many rows more.
  int64_t BytesWith(int64_t more) const;
  // What a table has without rows, of so many logical shards.
  static int64_t EmptyBytes(int num_shards);
  // Since it was made.
  int64_t created_rows() const { return created_; }
  int64_t evicted_rows() const { return evicted_; }

  // How many rows more an update of these would make it have. REQUIRES: the ids
  // are this table's, those of a logical shard in one run, each once.
  int64_t CountNew(absl::Span<const int64_t> ids) const;
  // Makes room for them; false if the machine has no memory.
  bool Reserve(int64_t rows) { return keys_->rows.Reserve(rows); }

  // Writes the rows' values [n, dim]; first ones where there is none.
  void Read(absl::Span<const int64_t> ids, float* values) const;

  // Updates rows by gradients [n, dim]. REQUIRES: as CountNew, and there is
  // room for those that are new.
  void Update(absl::Span<const int64_t> ids, const float* gradients,
              const ModelUpdate& update, ShardSnapshot* snapshot);

  // Gives a row what it is loaded with, and makes it first if it is not there:
  // `streams` are its values and each of its slots, [dim] each. `updates` of
  // the model are before the load. REQUIRES: room.
  void Load(int64_t id, int64_t row_updates, int64_t updates,
            absl::Span<const float* const> streams, ShardSnapshot* snapshot);

  // From now on `snapshot`, which has begun, has the rows as they are.
  void BeginSnapshot(const ShardSnapshot& snapshot);
  // Frees what is held for snapshots.
  void ClearSnapshot();
  // The first logical shard that may be read.
  int passed_logical_shards() const {
    return first_shard_ + snapshot_.passed();
  }
  // At most `max_rows` rows from the cursor on; logical shards before it may
  // not be read any more. REQUIRES: the snapshot goes on, and has begun here;
  // the cursor's logical shard is this table's, and not passed.
  SnapshotRows ReadSnapshot(const RowCursor& cursor, int64_t max_rows,
                            ShardSnapshot* snapshot);

 private:
  static constexpr uint32_t kNone = RowSlabs::kNone;

  // What finds rows: their memory does not move with the table.
  struct Keys {
    RowHash hash;
    RowSlabs rows;
  };
  // An id of which any row will do that has a place of its hash: the one that
  // has it, but for a few, found without looking at a row.
  struct Guess {
    int64_t id;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(Guess guess) const { return (*this)(guess.id); }
    size_t operator()(int64_t id) const { return keys->hash.Of(id); }
    size_t operator()(uint32_t row) const {
      return keys->hash.Of(keys->rows[row].id);
    }
    const Keys* keys;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t, Guess) const { return true; }
    bool operator()(uint32_t row, int64_t id) const {
      return keys->rows[row].id == id;
    }
    const Keys* keys;
  };
  // Numbers of rows, 5 to 13 bytes each.
  using Index = absl::flat_hash_set<uint32_t, Hash, Equal>;
  struct LogicalShard {
    Index index;
    // The order of updates; kept only with max_rows.
    uint32_t oldest = kNone;
    uint32_t newest = kNone;
  };

  int num_shards() const { return static_cast<int>(shards_.size()); }
  // The logical shard's number here.
  int ShardOf(int64_t id) const {
    return keys_->hash.LogicalShardOf(id) - first_shard_;
  }
  bool is_bounded() const { return max_rows_per_shard_ > 0; }

  uint32_t Find(int64_t id) const;
  // Finds some at once, and has their memory fetched.
  void FindAll(absl::Span<const int64_t> ids, uint32_t* rows) const;
  uint32_t Create(int shard, int64_t id, ShardSnapshot* snapshot);
  void Evict(int shard, ShardSnapshot* snapshot);
  // Counts a row's update; returns it, which is to be applied before the row
  // may go.
  UpdateRule::RowUpdate BeginUpdate(uint32_t row, const float* gradient,
                                    const ModelUpdate& update);
  // Puts a row, which is in no order, where its version and id want it. The
  // search begins behind `behind`, if that is of the same update.
  void Link(int shard, uint32_t row, uint32_t behind);
  void Unlink(int shard, uint32_t row);
  // The ids of a logical shard in the snapshot, sorted.
  const std::vector<int64_t>& SnapshotIds(int shard);

  TableDef def_;
  std::unique_ptr<UpdateRule> rule_;
  FirstRow first_row_;
  int first_shard_;
  size_t max_rows_per_shard_;
  std::unique_ptr<Keys> keys_;
  std::vector<LogicalShard> shards_;
  int64_t created_ = 0;
  int64_t evicted_ = 0;
  RowSnapshot snapshot_;
  // SnapshotIds' newest answer; -1: there is none.
  int sorted_shard_ = -1;
  std::vector<int64_t> sorted_ids_;
};

}  // namespace muster

#endif  // PS_SERVER_BLOCK_ROW_TABLE_H_
