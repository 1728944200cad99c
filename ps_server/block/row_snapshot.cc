#include "ps_server/block/row_snapshot.h"

#include <algorithm>

namespace muster {
namespace {

// What an entry of the hash map takes at most, with its place in it.
constexpr int64_t kEntryBytes = 64;

}  // namespace

void RowSnapshot::Begin(const ShardSnapshot& snapshot, int num_shards) {
  Clear();
  id_ = snapshot.id();
  shards_.resize(num_shards);
}

void RowSnapshot::Clear() {
  id_ = 0;
  passed_ = 0;
  shards_.clear();
}

bool RowSnapshot::IsOf(const ShardSnapshot& snapshot) {
  if (id_ == 0) return false;
  if (id_ == snapshot.id()) return true;
  Clear();
  return false;
}

RowSnapshot::Copy* RowSnapshot::Add(int shard, int64_t id, int64_t bytes,
                                    ShardSnapshot* snapshot) {
  if (!IsOf(*snapshot) || shard < passed_) return nullptr;
  Shard& of = shards_[shard];
  if (of.copies.contains(id) || !snapshot->Take(kEntryBytes + bytes)) {
    return nullptr;
  }
  of.bytes += kEntryBytes + bytes;
  return &of.copies[id];
}

void RowSnapshot::Save(int shard, const RowSlabs& rows, uint32_t row,
                       ShardSnapshot* snapshot) {
  const int64_t floats = rows.floats_per_row();
  Copy* const copy =
      Add(shard, rows[row].id, floats * static_cast<int64_t>(sizeof(float)),
          snapshot);
  if (copy == nullptr) return;
  copy->values = std::make_unique<float[]>(floats);
  std::copy_n(rows.values(row), floats, copy->values.get());
  copy->updates = rows[row].updates;
}

void RowSnapshot::SaveAbsent(int shard, int64_t id, ShardSnapshot* snapshot) {
  Add(shard, id, /*bytes=*/0, snapshot);
}

void RowSnapshot::PassTo(int shard, ShardSnapshot* snapshot) {
  for (; passed_ < shard; ++passed_) {
    Shard& of = shards_[passed_];
    snapshot->Give(of.bytes);
    of = Shard();
  }
}

}  // namespace muster
