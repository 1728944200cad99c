#include "ps_server/block/parameter_memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace muster {

ParameterMemory::ParameterMemory(int64_t size_bytes,
                                 absl::StatusOr<MemorySegment> segment,
                                 AlignedBuffer buffer)
    : size_bytes_(size_bytes),
      segment_(std::move(segment)),
      buffer_(std::move(buffer)) {}

std::shared_ptr<ParameterMemory> ParameterMemory::CreatePrivate(
    int64_t size_bytes, const absl::Status& why) {
  std::optional<AlignedBuffer> buffer = AlignedBuffer::TryCreate(size_bytes);
  if (!buffer.has_value()) return nullptr;
  return absl::WrapUnique(
      new ParameterMemory(size_bytes, why, *std::move(buffer)));
}

std::shared_ptr<ParameterMemory> ParameterMemory::Private(int64_t size_bytes) {
  return CreatePrivate(size_bytes, absl::FailedPreconditionError(
                                       "the parameters are the ps's alone"));
}

std::shared_ptr<ParameterMemory> ParameterMemory::Shared(int64_t size_bytes) {
  // A shard without tensors has one, too.
  absl::StatusOr<MemorySegment> segment = MemorySegment::Create(
      std::max<int64_t>(size_bytes, 1), MemorySegment::Access::kRead);
  if (!segment.ok()) {
    return CreatePrivate(size_bytes, absl::FailedPreconditionError(absl::StrCat(
                                         "the parameters are the ps's alone: ",
                                         segment.status().message())));
  }
  return absl::WrapUnique(new ParameterMemory(size_bytes, std::move(segment)));
}

}  // namespace muster
