#include "worker/client/pinned_cord.h"

#include <memory>

namespace muster {
namespace {

// Below this a copy costs less than a reference.
constexpr int64_t kCopyBelowBytes = 512;

}  // namespace

std::optional<absl::Cord> MakePinnedCord(Transfer* transfer,
                                         absl::Span<const TensorView> pieces) {
  // For the copies: done must not come while they are read.
  if (!transfer->Hold()) return std::nullopt;
  const std::shared_ptr<Transfer> shared = transfer->shared_from_this();
  std::optional<absl::Cord> cord = absl::Cord();
  for (const TensorView& piece : pieces) {
    const absl::string_view bytes(piece.data, piece.size_bytes);
    if (piece.size_bytes < kCopyBelowBytes) {
      cord->Append(bytes);
    } else if (transfer->Hold()) {
      cord->Append(
          absl::MakeCordFromExternal(bytes, [shared] { shared->Release(); }));
    } else {
      cord.reset();
      break;
    }
  }
  transfer->Release();
  return cord;
}

}  // namespace muster
