#include "ps_server/shard_snapshot.h"

#include <algorithm>
#include <cassert>

namespace muster {

void ShardSnapshot::Begin(uint64_t id) {
  assert(id != 0);
  Clear();
  id_ = id;
}

void ShardSnapshot::End(uint64_t id) {
  if (id == id_) Clear();
}

void ShardSnapshot::Clear() {
  id_ = 0;
  saved_.clear();
  copied_bytes_ = 0;
}

void ShardSnapshot::BeforeWrite(int tensor_index, const TensorBlocks& tensor,
                                int64_t block) {
  if (id_ == 0) return;
  const auto [it, inserted] = saved_.try_emplace({tensor_index, block});
  if (!inserted) return;
  std::vector<float>& streams = it->second.streams;
  const int64_t elements = tensor.BlockElements(block);
  streams.reserve(elements * (1 + tensor.num_slots()));
  for (int stream = 0; stream <= tensor.num_slots(); ++stream) {
    const float* const values = tensor.Stream(block, stream);
    streams.insert(streams.end(), values, values + elements);
  }
  it->second.updates = tensor.updates(block);
  copied_bytes_ += static_cast<int64_t>(streams.size() * sizeof(float));
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
    const float* const values = saved == saved_.end()
                                    ? tensor.Stream(block, stream)
                                    : saved->second.streams.data() +
                                          stream * tensor.BlockElements(block);
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
