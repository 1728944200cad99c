#ifndef COMMON_RPC_PARAMETER_LINK_H_
#define COMMON_RPC_PARAMETER_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/rpc/device_parameters.h"
#include "common/rpc/link.h"
#include "common/rpc/protocol.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// A message with tensor bytes (a "frame" of parameter_service.proto). The
// header's own `data` field stays empty; the bytes are in `data`, which shares
// the memory that they came from.
template <typename Header>
struct Frame {
  Header header;
  absl::Cord data;
  // Its bytes are in the ValuePlace that the call was given; `data` is empty.
  bool is_placed = false;
};

// The caller's memory for the values of an answer, where a link may receive
// them without a copy. One link at a time has it, until the call's `done`.
class ValuePlace {
 public:
  virtual ~ValuePlace() = default;

  // The memory, in the order of the values: `size_bytes` in all. Empty: an
  // answer of that size does not go here, but to the frame's data.
  virtual absl::Span<const absl::Span<char>> PiecesFor(size_t size_bytes) = 0;

  // Calls `write`, which may write to that memory and must not block, and
  // returns true; false, and nothing is called, if the caller has given the
  // call up. Asked anew for each write.
  virtual bool WriteIfWanted(absl::FunctionRef<void()> write) = 0;
};

// One ps task's ParameterService, wherever it is: behind gRPC
// (worker/client/link/grpc_parameter_link.h), in this process
// (ps_server/service/shard_server.h, for --standalone), or simulated. The
// requests are those of parameter_service.proto; those without tensors are the
// rows of the call table, those with tensors are here, and behave as they do.
//
// Tensor bytes are never copied on the way: those of a request are read until
// `done` is called, those of values (PullReply, PushReply) may be the shard's
// own and are valid until `done` returns. Who keeps them copies them.
class ParameterLink : public Link {
 public:
  // The number of tensor bytes in one message that makes the best of this way
  // as it is now: whole blocks, at most kMaxPartBytes. It takes messages of any
  // size up to that.
  virtual int64_t best_part_bytes() const { return kMaxPartBytes; }

  // How many such messages on their way at once keep it busy while the shard
  // works on them, also where a round trip is long; more only queue.
  virtual int best_window_parts() const {
    return static_cast<int>(4 * kMaxPartBytes / best_part_bytes());
  }

  virtual void Load(Frame<LoadPart> request, absl::Time deadline,
                    ReplyCallback<LoadReply> done) = 0;
  virtual void Pull(const PullRequest& request, absl::Time deadline,
                    ReplyCallback<Frame<PullReply>> done) = 0;
  virtual void Push(Frame<PushPart> request, absl::Time deadline,
                    ReplyCallback<Frame<PushReply>> done) = 0;
  // Without tables nobody calls it.
  virtual void PullRows(Frame<PullRowsRequest> /*request*/,
                        absl::Time /*deadline*/,
                        ReplyCallback<Frame<PullRowsReply>> done) {
    done(absl::UnimplementedError("this way to a ps task carries no rows"));
  }
  virtual void ReadSnapshot(const ReadSnapshotRequest& request,
                            absl::Time deadline,
                            ReplyCallback<Frame<SnapshotPart>> done) = 0;

  // As Pull and Push, with a place for the answer's values, which a link may
  // use (Frame::is_placed) or leave. After an error what lies there is
  // undefined.
  virtual void PullTo(std::shared_ptr<ValuePlace> /*place*/,
                      const PullRequest& request, absl::Time deadline,
                      ReplyCallback<Frame<PullReply>> done) {
    Pull(request, deadline, std::move(done));
  }
  virtual void PushTo(std::shared_ptr<ValuePlace> /*place*/,
                      Frame<PushPart> request, absl::Time deadline,
                      ReplyCallback<Frame<PushReply>> done) {
    Push(std::move(request), deadline, std::move(done));
  }

  // The memory where the shard keeps the parameters of the fence's model epoch,
  // and goes on changing them, for this process to read: tensor after tensor as
  // they were defined, each begun at the next multiple of
  // AlignedBuffer::kAlignment, `size_bytes` in all. They are there as long as
  // the pointer is held, also when that epoch, or the ps, is gone. May block
  // for seconds. Errors: FailedPrecondition (also a fence) and Unimplemented if
  // there is no way; Unavailable, DeadlineExceeded, ResourceExhausted.
  virtual absl::StatusOr<std::shared_ptr<const char>> MapParameters(
      const Fence& /*fence*/, int64_t /*size_bytes*/) {
    return absl::UnimplementedError(
        "parameters can be read in place through shared memory only");
  }

  // `holder` has the shard's parameters from now on (DeviceParameters), until
  // the next Define; it outlives that. Of a shard of this process only: no
  // message says so. Waits for its turn. Errors: FailedPrecondition (also
  // a fence) and Unimplemented if it cannot be; Unavailable; those of the
  // holder.
  virtual absl::Status KeepOnDevice(const Sender& /*sender*/,
                                    const Fence& /*fence*/,
                                    DeviceParameters* /*holder*/) {
    return absl::UnimplementedError(
        "only the parameters of a shard of this process can be held");
  }

  // One update of all parameters, by who holds them: as a push of one part
  // whose slices are the whole shard, with the gradients that the holder has.
  // `request` has no slices, codec or round. Waits for its turn; carried out
  // when it returns. Errors: FailedPrecondition (also a fence) if the sender
  // does not hold them; InvalidArgument, Unavailable.
  virtual absl::StatusOr<PushReply> UpdateOnDevice(
      const PushPart& /*request*/) {
    return absl::UnimplementedError(
        "only a shard of this process can have its parameters held");
  }
};

}  // namespace muster

#endif  // COMMON_RPC_PARAMETER_LINK_H_
