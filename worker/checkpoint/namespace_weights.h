#ifndef WORKER_CHECKPOINT_NAMESPACE_WEIGHTS_H_
#define WORKER_CHECKPOINT_NAMESPACE_WEIGHTS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "proto/tensor.pb.h"
#include "worker/checkpoint/tensor_match.h"
#include "worker/client/parameter_client.h"

namespace muster {

// First values of parameters from another namespace's, on the same ps tasks:
// --read_from.
struct NamespaceWeights {
  // "" is the default one; none: nothing is read.
  std::optional<std::string> space;
  // Matched as the tensors of --init_from.
  MatchOptions match;
};

// Has the values of the parameters that the namespace has written to
// values(index), and returns the line for it: "3 of them from namespace 'a'".
// Says what MatchOptions::partial allowed. REQUIRES: weights.space; the
// client's epoch is set. Errors: InvalidArgument ("--read_from=a: ...") for a
// namespace that is not there, has no whole model or does not match; those of a
// transfer.
absl::StatusOr<std::string> ReadNamespaceWeights(
    const NamespaceWeights& weights, ParameterClient* client,
    absl::Span<const TensorDef> parameters,
    const std::function<absl::Span<float>(int index)>& values,
    const Reporter& reporter);

// Hello to a ps task, unless it would make the sender's namespace and the one
// to read from is not there: a mistake in the flag leaves nothing behind.
// REQUIRES: weights.space, which lives until `done`. Errors besides Hello's:
// InvalidArgument ("--read_from=a: ...").
void HelloToReader(const NamespaceWeights& weights, ParameterClient* client,
                   int ps_task, const HelloRequest& request,
                   ReplyCallback<HelloReply> done);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_NAMESPACE_WEIGHTS_H_
