#include "ps_server/block/row_table.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster {
namespace {

// Rows whose memory is fetched at once: enough to hide what it takes, few
// enough for the caches; those of one batch share what their updates have in
// common.
constexpr size_t kBatch = 64;

// What finds a row, at most.
constexpr int64_t kIndexBytes = 13;

constexpr int64_t kLineFloats = 64 / sizeof(float);
// More of a row are fetched by the machine itself.
constexpr int64_t kFetchedFloats = 8 * kLineFloats;

void Fetch(const float* values, int64_t floats) {
  const int64_t end = std::min(floats, kFetchedFloats);
  for (int64_t i = 0; i < end; i += kLineFloats) {
    __builtin_prefetch(values + i, /*rw=*/1);
  }
}

}  // namespace

RowTable::RowTable(const TableDef& def, std::unique_ptr<UpdateRule> rule,
                   int first_logical_shard, int end_logical_shard)
    : def_(def),
      rule_(std::move(rule)),
      first_row_(def),
      first_shard_(first_logical_shard),
      max_rows_per_shard_(
          def.max_rows() == 0
              ? 0
              : std::max<int64_t>(1, def.max_rows() / kLogicalShards)),
      keys_(new Keys{RowHash(def.name()),
                     RowSlabs(def.dim() * (1 + static_cast<int64_t>(
                                                   rule_->slots().size())))}) {
  const int count = end_logical_shard - first_logical_shard;
  shards_.reserve(count);
  for (int i = 0; i < count; ++i) {
    shards_.push_back(
        {Index(0, Hash{keys_.get()}, Equal{keys_.get()}), kNone, kNone});
  }
}

int64_t RowTable::EmptyBytes(int num_shards) {
  return num_shards * static_cast<int64_t>(sizeof(LogicalShard));
}

int64_t RowTable::BytesWith(int64_t more) const {
  return EmptyBytes(num_shards()) + keys_->rows.BytesWith(more) +
         (rows() + more) * kIndexBytes;
}

bool RowTable::Has(int64_t id) const {
  const int shard = ShardOf(id);
  return shard >= 0 && shard < num_shards();
}

uint32_t RowTable::Find(int64_t id) const {
  const Index& index = shards_[ShardOf(id)].index;
  const auto found = index.find(id);
  return found == index.end() ? kNone : *found;
}

void RowTable::FindAll(absl::Span<const int64_t> ids, uint32_t* rows) const {
  // Each step fetches what the next one looks at: half of an update was waiting
  // for rows, one after another (2 cores of EPYC, 1.75 million rows).
  for (const int64_t id : ids) shards_[ShardOf(id)].index.prefetch(id);
  for (const int64_t id : ids) {
    const Index& index = shards_[ShardOf(id)].index;
    const auto guess = index.find(Guess{id});
    if (guess == index.end()) continue;
    __builtin_prefetch(&keys_->rows[*guess], /*rw=*/1);
    Fetch(keys_->rows.values(*guess), floats_per_row());
  }
  for (const int64_t id : ids) *rows++ = Find(id);
}

int64_t RowTable::CountNew(absl::Span<const int64_t> ids) const {
  std::array<uint32_t, kBatch> rows;
  int64_t count = 0;
  int64_t of_shard = 0;
  int shard = -1;
  for (size_t begin = 0; begin < ids.size(); begin += kBatch) {
    const absl::Span<const int64_t> batch = ids.subspan(begin, kBatch);
    FindAll(batch, rows.data());
    for (size_t i = 0; i < batch.size(); ++i) {
      if (rows[i] != kNone) continue;
      if (std::exchange(shard, ShardOf(batch[i])) != shard) of_shard = 0;
      ++of_shard;
      // One that is full keeps its number.
      const size_t rows_then = shards_[shard].index.size() + of_shard;
      if (!is_bounded() || rows_then <= max_rows_per_shard_) ++count;
    }
  }
  return count;
}

void RowTable::Read(absl::Span<const int64_t> ids, float* values) const {
  std::array<uint32_t, kBatch> rows;
  for (size_t begin = 0; begin < ids.size(); begin += kBatch) {
    const absl::Span<const int64_t> batch = ids.subspan(begin, kBatch);
    FindAll(batch, rows.data());
    for (size_t i = 0; i < batch.size(); ++i, values += dim()) {
      if (rows[i] == kNone) {
        first_row_.Fill(batch[i], {values, static_cast<size_t>(dim())});
      } else {
        std::copy_n(keys_->rows.values(rows[i]), dim(), values);
      }
    }
  }
}

void RowTable::Update(absl::Span<const int64_t> ids, const float* gradients,
                      const ModelUpdate& update, ShardSnapshot* snapshot) {
  std::array<uint32_t, kBatch> rows;
  std::vector<UpdateRule::RowUpdate> begun;
  begun.reserve(kBatch);
  const auto apply = [&] {
    rule_->ApplyToRows(begun, dim());
    begun.clear();
  };
  int last_shard = -1;
  uint32_t last = kNone;
  for (size_t begin = 0; begin < ids.size(); begin += kBatch) {
    const absl::Span<const int64_t> batch = ids.subspan(begin, kBatch);
    FindAll(batch, rows.data());
    const int64_t evicted = evicted_;
    for (size_t i = 0; i < batch.size(); ++i, gradients += dim()) {
      const int shard = ShardOf(batch[i]);
      uint32_t row = evicted == evicted_ ? rows[i] : Find(batch[i]);
      if (row == kNone) {
        if (is_bounded()) apply();
        row = Create(shard, batch[i], snapshot);
      } else {
        snapshot_.Save(shard, keys_->rows, row, snapshot);
        if (is_bounded()) Unlink(shard, row);
      }
      begun.push_back(BeginUpdate(row, gradients, update));
      if (!is_bounded()) continue;
      Link(shard, row, shard == last_shard ? last : kNone);
      last_shard = shard;
      last = row;
    }
    apply();
  }
}

UpdateRule::RowUpdate RowTable::BeginUpdate(uint32_t row, const float* gradient,
                                            const ModelUpdate& update) {
  RowSlabs::Row& known = keys_->rows[row];
  const auto version = static_cast<uint32_t>(update.updates);
  BlockUpdate block;
  block.t = int64_t{known.updates} + 1;
  block.rate_factor = update.rate_factor;
  block.updates = update.updates;
  block.updates_before = update.updates - (version - known.version);
  if (known.updates != UINT32_MAX) ++known.updates;
  known.version = version;
  return {block, gradient, keys_->rows.values(row)};
}

uint32_t RowTable::Create(int shard, int64_t id, ShardSnapshot* snapshot) {
  LogicalShard& of = shards_[shard];
  if (is_bounded() && of.index.size() >= max_rows_per_shard_) {
    Evict(shard, snapshot);
  }
  const uint32_t row = keys_->rows.Add(id);
  float* values = keys_->rows.values(row);
  first_row_.Fill(id, {values, static_cast<size_t>(dim())});
  for (const SlotDef& slot : rule_->slots()) {
    values += dim();
    std::fill_n(values, dim(), slot.initial_value);
  }
  of.index.insert(row);
  snapshot_.SaveAbsent(shard, id, snapshot);
  ++created_;
  return row;
}

void RowTable::Evict(int shard, ShardSnapshot* snapshot) {
  LogicalShard& of = shards_[shard];
  const uint32_t row = of.oldest;
  snapshot_.Save(shard, keys_->rows, row, snapshot);
  Unlink(shard, row);
  of.index.erase(row);
  keys_->rows.Remove(row);
  ++evicted_;
}

void RowTable::Link(int shard, uint32_t row, uint32_t behind) {
  LogicalShard& of = shards_[shard];
  RowSlabs& rows = keys_->rows;
  RowSlabs::Row& known = rows[row];
  // Its number is the new row's if it was evicted for that.
  const bool may_begin = behind != kNone && behind != row &&
                         rows[behind].version == known.version &&
                         rows[behind].id < known.id;
  uint32_t before = of.newest;
  if (may_begin) {
    before = behind;
    for (uint32_t next = rows[before].after;
         next != kNone && rows[next].id < known.id; next = rows[next].after) {
      before = next;
    }
  } else {
    while (before != kNone && rows[before].version == known.version &&
           rows[before].id > known.id) {
      before = rows[before].before;
    }
  }
  known.before = before;
  known.after = before == kNone ? of.oldest : rows[before].after;
  (before == kNone ? of.oldest : rows[before].after) = row;
  (known.after == kNone ? of.newest : rows[known.after].before) = row;
}

void RowTable::Unlink(int shard, uint32_t row) {
  LogicalShard& of = shards_[shard];
  RowSlabs& rows = keys_->rows;
  const RowSlabs::Row& known = rows[row];
  (known.before == kNone ? of.oldest : rows[known.before].after) = known.after;
  (known.after == kNone ? of.newest : rows[known.after].before) = known.before;
}

void RowTable::Load(int64_t id, int64_t row_updates, int64_t updates,
                    absl::Span<const float* const> streams,
                    ShardSnapshot* snapshot) {
  const int shard = ShardOf(id);
  uint32_t row = Find(id);
  if (row == kNone) {
    row = Create(shard, id, snapshot);
  } else {
    snapshot_.Save(shard, keys_->rows, row, snapshot);
    if (is_bounded()) Unlink(shard, row);
  }
  float* values = keys_->rows.values(row);
  for (const float* const stream : streams) {
    values = std::copy_n(stream, dim(), values);
  }
  RowSlabs::Row& known = keys_->rows[row];
  known.updates =
      static_cast<uint32_t>(std::min<int64_t>(row_updates, UINT32_MAX));
  // Older than what the first update changes.
  known.version = static_cast<uint32_t>(updates - 1);
  if (is_bounded()) Link(shard, row, kNone);
}

void RowTable::BeginSnapshot(const ShardSnapshot& snapshot) {
  ClearSnapshot();
  snapshot_.Begin(snapshot, num_shards());
}

void RowTable::ClearSnapshot() {
  snapshot_.Clear();
  sorted_shard_ = -1;
  sorted_ids_ = {};
}

const std::vector<int64_t>& RowTable::SnapshotIds(int shard) {
  if (std::exchange(sorted_shard_, shard) == shard) return sorted_ids_;
  const RowSnapshot::Copies& copies = snapshot_.copies(shard);
  sorted_ids_.clear();
  for (const uint32_t row : shards_[shard].index) {
    const int64_t id = keys_->rows[row].id;
    if (!copies.contains(id)) sorted_ids_.push_back(id);
  }
  for (const auto& [id, copy] : copies) {
    if (copy.values != nullptr) sorted_ids_.push_back(id);
  }
  std::sort(sorted_ids_.begin(), sorted_ids_.end());
  return sorted_ids_;
}

RowTable::SnapshotRows RowTable::ReadSnapshot(const RowCursor& cursor,
                                              int64_t max_rows,
                                              ShardSnapshot* snapshot) {
  int shard = cursor.logical_shard() - first_shard_;
  snapshot_.PassTo(shard, snapshot);
  SnapshotRows read;
  bool is_first = cursor.has_after_id();
  for (; shard < num_shards(); ++shard) {
    const std::vector<int64_t>& ids = SnapshotIds(shard);
    auto next =
        std::exchange(is_first, false)
            ? std::upper_bound(ids.begin(), ids.end(), cursor.after_id())
            : ids.begin();
    for (; next != ids.end(); ++next) {
      if (static_cast<int64_t>(read.ids.size()) == max_rows) {
        read.next.emplace().set_logical_shard(first_shard_ + shard);
        if (next != ids.begin()) read.next->set_after_id(*(next - 1));
        return read;
      }
      const auto copy = snapshot_.copies(shard).find(*next);
      const bool is_copied = copy != snapshot_.copies(shard).end();
      const uint32_t row = is_copied ? kNone : Find(*next);
      read.ids.push_back(*next);
      read.updates.push_back(is_copied ? copy->second.updates
                                       : keys_->rows[row].updates);
      read.values.push_back(is_copied ? copy->second.values.get()
                                      : keys_->rows.values(row));
    }
  }
  return read;
}

}  // namespace muster
