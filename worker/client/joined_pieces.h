#ifndef WORKER_CLIENT_JOINED_PIECES_H_
#define WORKER_CLIENT_JOINED_PIECES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/client/client_model.h"

namespace muster {

// Memory that is mapped in several places, once more in one: the pieces one
// after another at the result, which has what is written to them there, and
// stays though they go. Nothing is copied.
//
// Errors: FailedPrecondition if a piece is not in memory that processes share,
// does not begin at a page, or, but for the last one, is not of whole pages;
// ResourceExhausted if there are no addresses left.
absl::StatusOr<std::shared_ptr<const char>> JoinPieces(
    absl::Span<const TensorView> pieces);

}  // namespace muster

#endif  // WORKER_CLIENT_JOINED_PIECES_H_
