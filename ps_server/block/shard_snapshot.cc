#include "ps_server/block/shard_snapshot.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {

void ShardSnapshot::Begin(uint64_t id, int64_t max_bytes) {
  assert(id != 0);
  Clear();
  id_ = id;
  max_bytes_ = max_bytes;
}

void ShardSnapshot::End(uint64_t id) {
  if (id == id_) Clear();
}

void ShardSnapshot::Clear() {
  id_ = 0;
  saved_.clear();
  copied_bytes_ = 0;
}

absl::Status ShardSnapshot::Check(absl::string_view what, uint64_t id) const {
  if (id != 0 && id == id_) return absl::OkStatus();
  if (id != 0 && id == given_up_) {
    return absl::AbortedError(absl::StrCat(
        what, ": snapshot ", id,
        " was given up, so that training goes on: copies of what it changes ",
        "would pass the ", max_bytes_,
        " bytes left beside the model; use more ps tasks, or more memory"));
  }
  return absl::AbortedError(
      absl::StrCat(what, ": snapshot ", id, " has ended; begin another"));
}

void ShardSnapshot::GiveUp() {
  given_up_ = id_;
  ++times_given_up_;
  Clear();
}

bool ShardSnapshot::Take(int64_t bytes) {
  if (id_ == 0) return false;
  if (bytes > max_bytes_ - copied_bytes_) {
    GiveUp();
    return false;
  }
  copied_bytes_ += bytes;
  return true;
}

void ShardSnapshot::Reserve(int tensor_index, const TensorBlocks& tensor,
                            int64_t block) {
  if (id_ == 0) return;
  const auto [it, inserted] = saved_.try_emplace({tensor_index, block});
  if (!inserted) return;
  const int64_t floats = tensor.BlockElements(block) * (1 + tensor.num_slots());
  const int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  if (!Take(bytes)) return;
  // Not zeroed: its pages are for the thread that saves the block.
  it->second.values.reset(new (std::nothrow) float[floats]);
  if (it->second.values == nullptr) return GiveUp();
  it->second.updates = tensor.updates(block);
}

void ShardSnapshot::Save(int tensor_index, const TensorBlocks& tensor,
                         int64_t block) {
  if (id_ == 0) return;
  SavedBlock& saved = saved_.find({tensor_index, block})->second;
  if (std::exchange(saved.is_saved, true)) return;
  const int64_t elements = tensor.BlockElements(block);
  for (int stream = 0; stream <= tensor.num_slots(); ++stream) {
    std::copy_n(tensor.Stream(block, stream), elements,
                saved.values.get() + stream * elements);
  }
}

void ShardSnapshot::Read(int tensor_index, const TensorBlocks& tensor,
                         int stream, int64_t offset, int64_t length,
                         float* dst) const {
  assert(id_ != 0 && offset >= 0 && offset + length <= tensor.elements());
  while (length > 0) {
    const int64_t block = offset / kBlockElements;
    const int64_t begin = offset - block * kBlockElements;
    const int64_t count = std::min(length, tensor.BlockElements(block) - begin);
    const auto saved = saved_.find({tensor_index, block});
    const float* const values =
        saved == saved_.end()
            ? tensor.Stream(block, stream)
            : saved->second.values.get() + stream * tensor.BlockElements(block);
    std::copy_n(values + begin, count, dst);
    dst += count;
    offset += count;
    length -= count;
  }
}

int64_t ShardSnapshot::Updates(int tensor_index, const TensorBlocks& tensor,
                               int64_t block) const {
  const auto saved = saved_.find({tensor_index, block});
  return saved == saved_.end() ? tensor.updates(block) : saved->second.updates;
}

}  // namespace muster
