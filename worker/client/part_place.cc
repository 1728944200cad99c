#include "worker/client/part_place.h"

namespace muster {

PartPlace::PartPlace(Transfer* transfer, const PlannedPart& part,
                     const Codec* codec,
                     absl::Span<const MutableTensorView> into)
    : transfer_(transfer->shared_from_this()) {
  const auto slices = static_cast<int64_t>(part.slices.size());
  if (codec != nullptr || part.bytes < slices * kLeastSliceBytes) return;
  pieces_.reserve(part.slices.size());
  for (const PlannedSlice& slice : part.slices) {
    auto* const values = reinterpret_cast<float*>(into[slice.tensor].data);
    const size_t bytes = slice.length * sizeof(float);
    pieces_.emplace_back(reinterpret_cast<char*>(values + slice.offset), bytes);
    size_bytes_ += bytes;
  }
}

absl::Span<const absl::Span<char>> PartPlace::PiecesFor(size_t size_bytes) {
  if (size_bytes != size_bytes_) return {};
  return pieces_;
}

bool PartPlace::WriteIfWanted(absl::FunctionRef<void()> write) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_ || !transfer_->Hold()) return false;
    write();
  }
  // May be the transfer's end, which calls back.
  transfer_->Release();
  return true;
}

void PartPlace::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
}

}  // namespace muster
