#include "ps_server/block/row_slabs.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace muster {
namespace {

// Of floats, unless one row has more.
constexpr int64_t kMaxSlabBytes = int64_t{1} << 20;
constexpr int64_t kLoneBytes = int64_t{32} << 20;
constexpr int64_t kBytesTogether = int64_t{8} << 20;

}  // namespace

RowSlabs::RowSlabs(int64_t floats_per_row) : floats_(floats_per_row) {
  const int64_t row = floats_ * static_cast<int64_t>(sizeof(float));
  while (shift_ > 0 && (row << shift_) > kMaxSlabBytes) --shift_;
  mask_ = (uint32_t{1} << shift_) - 1;
  // What follows is aligned to 8 bytes.
  row_bytes_ = ((row << shift_) + 7) / 8 * 8;
  lone_slabs_ = kLoneBytes / slab_bytes();
  slabs_together_ = std::max<int64_t>(1, kBytesTogether / slab_bytes());
}

int64_t RowSlabs::SlabsWith(int64_t more) const {
  int64_t needed = (rows_ + more + mask_) >> shift_;
  if (needed > lone_slabs_) {
    const int64_t rest = needed - lone_slabs_ + slabs_together_ - 1;
    needed = lone_slabs_ + rest / slabs_together_ * slabs_together_;
  }
  return std::max(needed, static_cast<int64_t>(slabs_.size()));
}

int64_t RowSlabs::BytesWith(int64_t more) const {
  return SlabsWith(more) * slab_bytes();
}

bool RowSlabs::Reserve(int64_t rows) {
  if (rows > int64_t{kNone} - rows_) return false;
  const int64_t slabs = SlabsWith(rows);
  while (static_cast<int64_t>(slabs_.size()) < slabs) {
    const bool is_lone = static_cast<int64_t>(slabs_.size()) < lone_slabs_;
    const int64_t count = is_lone ? 1 : slabs_together_;
    std::optional<AlignedBuffer> memory =
        AlignedBuffer::TryCreate(count * slab_bytes());
    if (!memory.has_value()) return false;
    for (int64_t i = 0; i < count; ++i) {
      slabs_.push_back(memory->data() + i * slab_bytes());
    }
    memory_.push_back(*std::move(memory));
  }
  return true;
}

uint32_t RowSlabs::Add(int64_t id) {
  const uint32_t row = free_ == kNone ? used_++ : free_;
  if (row == free_) free_ = (*this)[row].after;
  (*this)[row] = Row();
  (*this)[row].id = id;
  ++rows_;
  return row;
}

void RowSlabs::Remove(uint32_t row) {
  (*this)[row].after = free_;
  free_ = row;
  --rows_;
}

}  // namespace muster
