#ifndef PS_SERVER_SHARD_REPLICATION_POLICY_H_
#define PS_SERVER_SHARD_REPLICATION_POLICY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "proto/parameter_service.pb.h"
#include "proto/training.pb.h"
#include "ps_server/block/row_checks.h"
#include "ps_server/block/slice_checks.h"
#include "ps_server/block/tensor_table.h"

namespace muster {

// A part of a worker's step that passed every check and is no duplicate.
struct PushedPart {
  Sender sender;
  int64_t step = 0;
  int32_t part = 0;
  int32_t parts = 1;
  // Whether it is the first of its step to come.
  bool begins_step = true;
  // The round of the token that the step was taken with; 0: none.
  int64_t round = 0;
  std::vector<CheckedSlice> slices;
  // Their values, encoded by `codec` (null: float32), where they were received:
  // only until the answer, unless has_own_memory. Who keeps them copies them.
  absl::Cord data;
  const Codec* codec = nullptr;
  // Whether all values are known to be finite.
  bool is_finite = false;
  // `data` stay as they are, and may be kept, if nothing is published.
  bool has_own_memory = false;
  // Where Apply also writes the new values, slice after slice, encoded by
  // `publish_codec` (null: float32); null: nowhere. It may be where `data`
  // lies, if both take as many bytes a value.
  char* publish_to = nullptr;
  const Codec* publish_codec = nullptr;
  // Instead of slices and data: rows of tables.
  std::vector<CheckedRows> rows;
  // The step's staleness, in updates.
  int64_t staleness = 0;
  // The factor of the learning rate with which it is applied; at first the
  // push's own (PushPart.learning_rate_factor).
  double rate_factor = 1;

  // What it takes to keep it.
  int64_t bytes() const {
    auto bytes = static_cast<int64_t>(data.size());
    for (const CheckedRows& run : rows) bytes += run.bytes();
    return bytes;
  }
};

// The fate of a part that was pushed.
enum class PartFate {
  kAccepted,  // applied now or later, or not chosen
  kLate,      // dropped: its update has been made without it
};

// Changes the shard's values.
class PartApplier {
 public:
  virtual ~PartApplier() = default;

  // Applies one part; returns whether the new values are at its publish_to.
  // REQUIRES: it was checked against the present tensors.
  virtual bool Apply(const PushedPart& part) = 0;
  // Writes the gradient (a state tensor's delta) of one block; called from
  // several threads at once, for each block by one of them.
  using BlockGradient = absl::FunctionRef<void(int tensor, int64_t block,
                                               absl::Span<float> gradient)>;
  // Makes one update of each block of the slices, which are of whole blocks,
  // with the learning rate times `rate_factor`.
  virtual void ApplyToBlocks(absl::Span<const CheckedSlice> slices,
                             double rate_factor, BlockGradient gradient) = 0;
  // Makes one update of the rows, by these gradients.
  virtual void ApplyRows(const CheckedRows& rows, double rate_factor) = 0;
  // Raises the shard's version: one more update is made, or has begun.
  virtual void CountUpdate() = 0;
};

// When, and in what company, a pushed part changes the shard. One small class
// for each mode of ReplicationSpec, a state machine as the shard is. `what`
// begins every error message. Not thread-safe.
class ReplicationPolicy {
 public:
  virtual ~ReplicationPolicy() = default;

  // As in ReplicationSpec: "async".
  virtual absl::string_view name() const = 0;

  // Whether `part` may come now; changes nothing.
  // Errors: InvalidArgument for a round that does not suit the mode or a
  // gradient that is not one of the whole shard; FailedPrecondition before its
  // round; ResourceExhausted.
  virtual absl::StatusOr<PartFate> CheckPart(
      absl::string_view what, const PushedPart& part,
      const TensorTable& tensors) const = 0;

  // Applies `part` now, and returns what Apply does; or keeps it for a later
  // call, and returns false. REQUIRES: CheckPart has just said kAccepted.
  virtual bool OnPart(PushedPart part, const TensorTable& tensors,
                      PartApplier& applier) = 0;

  // Makes the update that `token` tells of, if it was not made yet; the values
  // may follow when they are read (BeforeRead). Repeatable. An error changes
  // nothing: InvalidArgument if the mode has no tokens, or for
  // a round that is no count (count_range.h);
  // Internal if the shard does not hold what was chosen.
  virtual absl::Status OnToken(absl::string_view what, const StepToken& token,
                               const TensorTable& tensors,
                               PartApplier& applier) = 0;

  // OnToken, after which the values are those of a checkpoint.
  // Errors: as OnToken; Aborted if they are newer.
  virtual absl::Status OnCut(absl::string_view what, const StepToken& token,
                             const TensorTable& tensors,
                             PartApplier& applier) = 0;

  // The values of the slices are about to be read: changes those of which an
  // update is made that they do not have yet.
  virtual void BeforeRead(absl::Span<const CheckedSlice> slices,
                          const TensorTable& tensors, PartApplier& applier) = 0;
  // The same for all values.
  virtual void Settle(const TensorTable& tensors, PartApplier& applier) = 0;

  // The newest step of each worker that is a part of the values; nothing if it
  // is the newest that the worker has pushed.
  virtual std::optional<std::vector<DuplicateMark>> AppliedSteps() const = 0;

  // Where the workers of one update have had other learning rates for the first
  // time, for the operator; "" if they have not.
  virtual absl::string_view RateDifference() const { return ""; }
};

// The policy that `spec` asks for; async if it names none. One that keeps
// gradients keeps at most `max_gradient_bytes`. `has_tables`: pushes may bring
// rows.
// Errors: Unimplemented, naming the mode.
absl::StatusOr<std::unique_ptr<ReplicationPolicy>> CreateReplicationPolicy(
    const ReplicationSpec& spec, int64_t max_gradient_bytes,
    bool has_tables = false);

}  // namespace muster

#endif  // PS_SERVER_SHARD_REPLICATION_POLICY_H_
