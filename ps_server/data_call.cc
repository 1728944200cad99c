#include "ps_server/data_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame_codec.h"

namespace muster {
namespace {

// A request that is a frame, answered by a message.
template <typename Header, typename Reply>
void PassFrame(ParameterLink* shard,
               void (ParameterLink::*method)(Frame<Header>, absl::Time,
                                             ReplyCallback<Reply>),
               const grpc::ByteBuffer& bytes, absl::Time deadline,
               BytesCallback answer) {
  absl::StatusOr<Frame<Header>> request = DecodeFrame<Header>(bytes);
  if (!request.ok()) return answer(request.status());
  (shard->*method)(
      *std::move(request), deadline,
      [answer = std::move(answer)](const absl::StatusOr<Reply>& reply) {
        if (!reply.ok()) return answer(reply.status());
        answer(EncodeFrame(*reply, absl::Cord()));
      });
}

// Reads a message that came as raw bytes. Errors: InvalidArgument.
template <typename Request>
absl::StatusOr<Request> ParseRaw(const grpc::ByteBuffer& bytes) {
  Request request;
  absl::Cord data;
  RETURN_IF_ERROR(DecodeFrameInto(bytes, &request, &data));
  if (data.empty()) return request;
  return absl::InvalidArgumentError("a request without tensors carries data");
}

// A request that is a message, answered by a frame.
template <typename Request, typename Header>
void PassMessage(ParameterLink* shard,
                 void (ParameterLink::*method)(const Request&, absl::Time,
                                               ReplyCallback<Frame<Header>>),
                 const grpc::ByteBuffer& bytes, absl::Time deadline,
                 BytesCallback answer) {
  const absl::StatusOr<Request> request = ParseRaw<Request>(bytes);
  if (!request.ok()) return answer(request.status());
  (shard->*method)(
      *request, deadline,
      [answer = std::move(answer)](const absl::StatusOr<Frame<Header>>& reply) {
        if (!reply.ok()) return answer(reply.status());
        answer(EncodeFrame(reply->header, reply->data));
      });
}

}  // namespace

void PassDataCall(ParameterLink* shard, const ExchangeBody& request,
                  absl::Time deadline, BytesCallback answer) {
  const grpc::ByteBuffer& bytes = request.message;
  switch (request.method) {
    case DataMethod::kLoad:
      return PassFrame(shard, &ParameterLink::Load, bytes, deadline,
                       std::move(answer));
    case DataMethod::kPull:
      return PassMessage(shard, &ParameterLink::Pull, bytes, deadline,
                         std::move(answer));
    case DataMethod::kPush:
      return PassFrame(shard, &ParameterLink::Push, bytes, deadline,
                       std::move(answer));
    case DataMethod::kReadSnapshot:
      return PassMessage(shard, &ParameterLink::ReadSnapshot, bytes, deadline,
                         std::move(answer));
  }
  answer(absl::UnimplementedError(
      absl::StrCat("there is no call ", static_cast<int>(request.method),
                   " with tensors; a newer worker?")));
}

}  // namespace muster
