#ifndef PS_SERVER_BLOCK_ROW_SLABS_H_
#define PS_SERVER_BLOCK_ROW_SLABS_H_

#include <cstdint>
#include <vector>

#include "common/tensor/aligned_buffer.h"

namespace muster {

// The memory of a table's rows, by number: each has its floats in one piece,
// and beside them what is known of it. It grows by slabs of 256 rows, or fewer
// large ones: one at a time, until there are 32 MiB, then 8 MiB in huge pages,
// without which a row among millions waits for the page table. Keeps what was
// freed for other rows. Rows never move. Not thread-safe. Movable, not
// copyable.
class RowSlabs {
 public:
  // The number of no row.
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Row {
    int64_t id = 0;
    // Its own count of updates, up to the largest.
    uint32_t updates = 0;
    // The low bits of the model's updates before its last one.
    uint32_t version = 0;
    // Its neighbours in its logical shard's order of updates.
    uint32_t before = kNone;
    uint32_t after = kNone;
  };

  explicit RowSlabs(int64_t floats_per_row);

  // Makes room for `rows` more; false, and nothing changes but for slabs that
  // are free, if there is none.
  bool Reserve(int64_t rows);
  // A new row, of undefined floats. REQUIRES: Reserve has made room.
  uint32_t Add(int64_t id);
  void Remove(uint32_t row);

  Row& operator[](uint32_t row) {
    return reinterpret_cast<Row*>(SlabOf(row) + row_bytes_)[row & mask_];
  }
  const Row& operator[](uint32_t row) const {
    return const_cast<RowSlabs&>(*this)[row];
  }
  // Its floats.
  float* values(uint32_t row) {
    return reinterpret_cast<float*>(SlabOf(row)) + (row & mask_) * floats_;
  }
  const float* values(uint32_t row) const {
    return const_cast<RowSlabs*>(this)->values(row);
  }

  int64_t floats_per_row() const { return floats_; }
  int64_t rows() const { return rows_; }
  // All of the memory, now and with room for `more` rows.
  int64_t bytes() const { return BytesWith(0); }
  int64_t BytesWith(int64_t more) const;

 private:
  int64_t rows_per_slab() const { return int64_t{mask_} + 1; }
  int64_t slab_bytes() const {
    return row_bytes_ + rows_per_slab() * static_cast<int64_t>(sizeof(Row));
  }
  int64_t SlabsWith(int64_t more) const;
  char* SlabOf(uint32_t row) { return slabs_[row >> shift_]; }

  int64_t floats_;
  int shift_ = 8;
  uint32_t mask_;
  // The floats of a slab, which come first.
  int64_t row_bytes_;
  // So many slabs have memory of their own, then so many share theirs.
  int64_t lone_slabs_;
  int64_t slabs_together_;
  std::vector<AlignedBuffer> memory_;
  std::vector<char*> slabs_;
  int64_t rows_ = 0;
  // Rows that were there at some time; none is behind them.
  uint32_t used_ = 0;
  // The first of those that were freed, in their `after`.
  uint32_t free_ = kNone;
};

}  // namespace muster

#endif  // PS_SERVER_BLOCK_ROW_SLABS_H_
