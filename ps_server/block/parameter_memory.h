#ifndef PS_SERVER_BLOCK_PARAMETER_MEMORY_H_
#define PS_SERVER_BLOCK_PARAMETER_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/shared_memory/memory_segment.h"
#include "common/tensor/aligned_buffer.h"

namespace muster {

// The memory of a shard's parameters, without their slots: tensor after tensor
// as they were defined, each begun at the next multiple of
// AlignedBuffer::kAlignment, or, a piece of one, of a page
// (AlignedPlaces::AddAtPage). Other processes may read it if it is shared.
class ParameterMemory {
 public:
  // Memory of this process alone, zeroed; null if the machine has none left.
  static std::shared_ptr<ParameterMemory> Private(int64_t size_bytes);
  // Memory that other processes can map to read, never to write. Private if the
  // machine has none; segment() then says why. Null as above.
  static std::shared_ptr<ParameterMemory> Shared(int64_t size_bytes);

  char* data() { return segment_.ok() ? segment_->data() : buffer_.data(); }
  const char* data() const {
    return segment_.ok() ? segment_->data() : buffer_.data();
  }
  int64_t size_bytes() const { return size_bytes_; }

  // The segment that others map. Errors: FailedPrecondition if it is private.
  const absl::StatusOr<MemorySegment>& segment() const { return segment_; }

 private:
  // The memory is that of `segment`, or else of `buffer`.
  ParameterMemory(int64_t size_bytes, absl::StatusOr<MemorySegment> segment,
                  AlignedBuffer buffer = {});
  // Memory of this process alone, because of `why`.
  static std::shared_ptr<ParameterMemory> CreatePrivate(
      int64_t size_bytes, const absl::Status& why);

  const int64_t size_bytes_;
  const absl::StatusOr<MemorySegment> segment_;
  // The memory, if there is no segment.
  AlignedBuffer buffer_;
};

}  // namespace muster

#endif  // PS_SERVER_BLOCK_PARAMETER_MEMORY_H_
