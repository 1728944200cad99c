#include "worker/client/link/unary_caller.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/deadline.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/frame/byte_buffer.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/stub_options.h"

namespace muster {

namespace {

// gRPC's own words for bytes of a call that make no sense to it: no ps answers
// with these codes.
absl::Status NameDamage(absl::Status error) {
  return absl::IsInternal(error) || absl::IsUnknown(error)
             ? Damaged(std::move(error))
             : error;
}

}  // namespace

struct UnaryCaller::PendingCall {
  explicit PendingCall(AliveCount* count) : alive(count) {}

  const AliveCount::Mark alive;
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer reply;
  BytesCallback done;
};

UnaryCaller::UnaryCaller(PeerName peer, PeerChannel::OpenFunction open)
    : peer_(std::move(peer)),
      check_(peer_.address, SystemClock()),
      channel_(std::move(open)) {}

UnaryCaller::~UnaryCaller() {
  std::vector<std::shared_ptr<PendingCall>> calls;
  {
    absl::MutexLock lock(&mu_);
    is_closing_ = true;
    calls.assign(pending_.begin(), pending_.end());
  }
  // Outside the lock: a completion may run inside TryCancel.
  for (const std::shared_ptr<PendingCall>& call : calls) {
    call->context.TryCancel();
  }
  calls.clear();
  alive_.AwaitNone();
}

void UnaryCaller::Call(const char* method, grpc::ByteBuffer request,
                       absl::Time deadline, BytesCallback done) {
  const auto call = std::make_shared<PendingCall>(&alive_);
  call->context.set_deadline(ToGrpcDeadline(deadline));
  call->request.Swap(&request);
  call->done = std::move(done);
  call->channel = channel_.Get();
  bool is_closing = false;
  {
    absl::MutexLock lock(&mu_);
    is_closing = is_closing_;
    if (!is_closing) pending_.insert(call);
  }
  if (is_closing) {
    return call->done(absl::CancelledError("the link to the ps is closing"));
  }
  grpc::GenericStub(call->channel)
      .UnaryCall(&call->context, method, grpc::StubOptions(), &call->request,
                 &call->reply, [this, call](const grpc::Status& status) {
                   Finish(call, status);
                 });
}

void UnaryCaller::Finish(const std::shared_ptr<PendingCall>& call,
                         const grpc::Status& status) {
  // gRPC may keep the context a little longer; the tensors need not wait.
  call->request.Clear();
  if (status.ok()) {
    check_.OnAnswer();
    call->done(std::move(call->reply));
  } else {
    const absl::Status error = NameDamage(ToAbslStatus(status));
    channel_.OnFailure(call->channel, error);
    call->done(Explain(status, error));
  }
  call->done = nullptr;
  // `call` itself is still held by the caller of this function.
  absl::MutexLock lock(&mu_);
  pending_.erase(call);
}

absl::Status UnaryCaller::Explain(const grpc::Status& status,
                                  const absl::Status& error) {
  const std::string found = check_.Explain(status);
  if (found.empty()) return ExplainPeerFailure(peer_, error);
  return absl::Status(error.code(), absl::StrCat(peer_.task, " at ",
                                                 peer_.address, ": ", found));
}

void UnaryCaller::CallBytes(const AnyMethod& method, const std::string& request,
                            absl::Time deadline,
                            ReplyCallback<std::string> done) {
  Call(method.path, ToByteBuffer(request), deadline,
       [done = std::move(done)](const absl::StatusOr<grpc::ByteBuffer>& reply) {
         if (!reply.ok()) return done(reply.status());
         done(BytesOf(*reply));
       });
}

}  // namespace muster
