#ifndef PS_SERVER_SERVICE_DATA_CALL_H_
#define PS_SERVER_SERVICE_DATA_CALL_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/method.h"
#include "common/rpc/parameter_link.h"
#include "common/tensor/buffer_pool.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps_server/service/entrance.h"
#include "ps_server/shard/push_context.h"

namespace muster {

// A shard as those see it who carry its values elsewhere: the calls that are
// answered with values, with memory to write these to. An answer's values may
// then be kept. The memory is asked for, and what it refers to is used, until
// `done` returns.
class DataLink : public ParameterLink {
 public:
  // As Pull, PullRows and Push.
  virtual void PullInto(const PullRequest& request, ValueMemory memory,
                        absl::Time deadline,
                        ReplyCallback<Frame<PullReply>> done) = 0;
  virtual void PullRowsInto(Frame<PullRowsRequest> request,
                            ValueMemory /*memory*/, absl::Time deadline,
                            ReplyCallback<Frame<PullRowsReply>> done) {
    PullRows(std::move(request), deadline, std::move(done));
  }
  virtual void PushInto(Frame<PushPart> request, PushContext context,
                        absl::Time deadline,
                        ReplyCallback<Frame<PushReply>> done) = 0;
};

struct DataCallTarget {
  // Both outlive every answer.
  DataLink* shard = nullptr;
  // The memory of values; an answer may outlive it.
  BufferPool* values = nullptr;
};

// Its row of the call table; null for a method that is none, which is
// Dispatch's to refuse.
const AnyMethod* RowOf(DataMethod method);

using BytesCallback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

// Dispatches one call whose request and reply are frames, and gives the reply's
// bytes to `answer`, once, possibly before it returns. `request` and `check`
// are used until then. Errors: those of Dispatch; InvalidArgument for a request
// that is none.
void PassDataCall(const DataCallTarget& target, DataMethod method,
                  const grpc::ByteBuffer& request, const CallCheck& check,
                  absl::Time deadline, BytesCallback answer);

// The sender of a request, a message or a Frame.
template <typename Header>
const Sender& SenderOf(const Frame<Header>& request) {
  return request.header.sender();
}
template <typename Message>
const Sender& SenderOf(const Message& request) {
  return request.sender();
}

// Reads the request, and has call(request, done) answer it.
template <typename Request, typename Reply, typename CallAdapter, typename Call>
void ReadAndCall(CallAdapter* adapter, const Call& call) {
  absl::StatusOr<Request> request = adapter->template Read<Request>();
  if (!request.ok()) return adapter->Fail(request.status());
  const absl::Status own = adapter->check().SenderIs(SenderOf(*request));
  if (!own.ok()) return adapter->Fail(own);
  call(*std::move(request), adapter->template Answer<Reply>());
}

// Carries out one call whose request or reply has tensors, whatever its form,
// to which this adapts it:
//
//   class CallAdapter {
//     // Outlives the answer.
//     DataLink& shard();
//     // Who calls.
//     CallCheck check() const;
//     // The place of values in a pull's answer, and what is known of a push.
//     ValueMemory Memory();
//     PushContext ContextOf(const PushPart&);
//     // The request, a message or a Frame; once. Errors: InvalidArgument.
//     template <typename Request> absl::StatusOr<Request> Read();
//     // A callback that gives the reply, or an error, to the caller; once.
//     template <typename Reply> ReplyCallback<Reply> Answer();
//     // Gives the caller an error instead.
//     void Fail(const absl::Status&);
//   };
//
// Errors: the shard's; those of Read and of the check; Unimplemented for a
// method that is none.
template <typename CallAdapter>
void Dispatch(DataMethod method, CallAdapter adapter, absl::Time deadline) {
  switch (method) {
    case DataMethod::kLoad:
      return ReadAndCall<Frame<LoadPart>, LoadReply>(
          &adapter, [&](Frame<LoadPart> load, auto done) {
            adapter.shard().Load(std::move(load), deadline, std::move(done));
          });
    case DataMethod::kPull:
      return ReadAndCall<PullRequest, Frame<PullReply>>(
          &adapter, [&](const PullRequest& pull, auto done) {
            adapter.shard().PullInto(pull, adapter.Memory(), deadline,
                                     std::move(done));
          });
    case DataMethod::kPush:
      return ReadAndCall<Frame<PushPart>, Frame<PushReply>>(
          &adapter, [&](Frame<PushPart> push, auto done) {
            PushContext context = adapter.ContextOf(push.header);
            adapter.shard().PushInto(std::move(push), std::move(context),
                                     deadline, std::move(done));
          });
    case DataMethod::kPullRows:
      return ReadAndCall<Frame<PullRowsRequest>, Frame<PullRowsReply>>(
          &adapter, [&](Frame<PullRowsRequest> pull, auto done) {
            adapter.shard().PullRowsInto(std::move(pull), adapter.Memory(),
                                         deadline, std::move(done));
          });
    case DataMethod::kReadSnapshot:
      return ReadAndCall<ReadSnapshotRequest, Frame<SnapshotPart>>(
          &adapter, [&](const ReadSnapshotRequest& read, auto done) {
            adapter.shard().ReadSnapshot(read, deadline, std::move(done));
          });
  }
  // Hello has asked for the version.
  adapter.Fail(Damaged(absl::UnimplementedError(
      absl::StrCat("there is no call ", static_cast<uint32_t>(method),
                   " with tensors; a newer worker?"))));
}

}  // namespace muster

#endif  // PS_SERVER_SERVICE_DATA_CALL_H_
