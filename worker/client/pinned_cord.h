#ifndef WORKER_CLIENT_PINNED_CORD_H_
#define WORKER_CLIENT_PINNED_CORD_H_

#include <optional>

#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "worker/client/client_model.h"
#include "worker/client/transfer.h"

namespace muster {

// The pieces one behind the other, sharing their memory (small ones are
// copied). Holds the transfer until the last reference to each is gone, however
// long gRPC's buffers keep it. Nothing if the transfer has ended.
std::optional<absl::Cord> MakePinnedCord(Transfer* transfer,
                                         absl::Span<const TensorView> pieces);

}  // namespace muster

#endif  // WORKER_CLIENT_PINNED_CORD_H_
