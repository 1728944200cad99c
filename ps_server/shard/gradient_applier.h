#ifndef PS_SERVER_SHARD_GRADIENT_APPLIER_H_
#define PS_SERVER_SHARD_GRADIENT_APPLIER_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/thread_team.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/device_parameters.h"
#include "ps_server/block/shard_snapshot.h"
#include "ps_server/block/stripes.h"
#include "ps_server/block/tensor_table.h"
#include "ps_server/shard/replication_policy.h"

namespace muster {

// Makes the updates of a shard's blocks, and looks at gradients before. The
// work is divided by blocks among a team of threads; one block is changed by
// one of them, so that there are no locks, and the bits are the same for any
// number of threads. Not thread-safe.
class GradientApplier {
 public:
  // The model that a gradient changes. All of it outlives a call.
  struct Model {
    TensorTable* tensors = nullptr;
    const UpdateRule* rule = nullptr;
    ShardSnapshot* snapshot = nullptr;
    // The holder of the parameters; null: they are updated where they are.
    DeviceParameters* holder = nullptr;
  };

  // `team`: null for the caller's thread alone; else it outlives this.
  explicit GradientApplier(ThreadTeam* team) : team_(team) {}

  // Checks that every value of `part`, and every sum with a state tensor, is
  // finite; the error (InvalidArgument, beginning with `what`) names the tensor
  // and the element. REQUIRES: its slices and their bytes were checked.
  absl::Status CheckFinitePart(absl::string_view what, const PushedPart& part,
                               const TensorTable& tensors) const;

  // Updates the blocks of one part, and publishes what they are then, in one
  // pass over the memory; or counts their updates, and has them made by who
  // holds the parameters. REQUIRES: it was checked.
  void ApplyPart(const PushedPart& part, const Model& model);

  // As PartApplier::ApplyToBlocks.
  void ApplyToBlocks(absl::Span<const CheckedSlice> slices, double rate_factor,
                     PartApplier::BlockGradient gradient, const Model& model);

 private:
  int threads() const { return team_ == nullptr ? 1 : team_->threads(); }
  // Calls body(i) for each stripe.
  void ForEach(const Stripes& stripes, absl::FunctionRef<void(int)> body) const;

  ThreadTeam* const team_;
  // The gradient of one block, for each stripe; kept to allocate nothing.
  std::vector<std::vector<float>> gradients_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_GRADIENT_APPLIER_H_
