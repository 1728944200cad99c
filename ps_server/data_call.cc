#include "ps_server/data_call.h"

#include <type_traits>
#include <utility>

#include "absl/strings/cord.h"
#include "common/rpc/frame_codec.h"
#include "ps_server/carry_out.h"
#include "ps_server/serve_call.h"

namespace muster {
namespace {

// As CarryOut wants it.
class GrpcForm {
 public:
  GrpcForm(const DataCallTarget& target, const grpc::ByteBuffer& bytes,
           BytesCallback answer)
      : target_(target), bytes_(bytes), answer_(std::move(answer)) {}

  ParameterLink& shard() { return *target_.shard; }
  void Push(Frame<PushPart> push, absl::Time deadline,
            ReplyCallback<Frame<PushReply>> done) {
    shard().Push(std::move(push), deadline, std::move(done));
  }

  template <typename Request>
  absl::StatusOr<Request> Read() {
    return ReadAs(static_cast<Request*>(nullptr));
  }

  template <typename Reply>
  ReplyCallback<Reply> Answer() {
    // A snapshot's values are copies already.
    BufferPool* const copies =
        std::is_same_v<Reply, Frame<SnapshotPart>> ? nullptr : target_.copies;
    return [answer = std::move(answer_),
            copies](const absl::StatusOr<Reply>& reply) {
      if (!reply.ok()) return answer(reply.status());
      answer(Encode(*reply, copies));
    };
  }

  void Fail(const absl::Status& status) { answer_(status); }

 private:
  // The type of the null pointer is that of the request.
  template <typename Header>
  absl::StatusOr<Frame<Header>> ReadAs(const Frame<Header>*) {
    return DecodeFrame<Header>(bytes_);
  }
  template <typename Message>
  absl::StatusOr<Message> ReadAs(const Message*) {
    return ParseRaw<Message>(bytes_);
  }

  template <typename Header>
  static grpc::ByteBuffer Encode(const Frame<Header>& frame,
                                 BufferPool* copies) {
    return EncodeFrame(frame.header, copies == nullptr
                                         ? frame.data
                                         : copies->Copy(frame.data));
  }
  template <typename Message>
  static grpc::ByteBuffer Encode(const Message& message, BufferPool*) {
    return EncodeFrame(message, absl::Cord());
  }

  const DataCallTarget target_;
  const grpc::ByteBuffer& bytes_;
  BytesCallback answer_;
};

}  // namespace

void PassDataCall(const DataCallTarget& target, const ExchangeBody& request,
                  absl::Time deadline, BytesCallback answer) {
  CarryOut(request.method, GrpcForm(target, request.message, std::move(answer)),
           deadline);
}

}  // namespace muster
