#include "ps_server/service/data_call.h"

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/cord.h"
#include "common/rpc/call_table.h"
#include "common/rpc/frame/frame_codec.h"
#include "ps_server/service/serve_call.h"

namespace muster {
namespace {

// A call whose messages are bytes of gRPC.
class BytesAdapter {
 public:
  BytesAdapter(const DataCallTarget& target, const grpc::ByteBuffer& bytes,
               const CallCheck& check, BytesCallback answer)
      : target_(target),
        bytes_(bytes),
        check_(check),
        answer_(std::move(answer)) {}

  DataLink& shard() { return *target_.shard; }
  CallCheck check() const { return check_; }
  ValueMemory Memory() {
    return [values = target_.values](size_t size_bytes,
                                     absl::FunctionRef<void(char*)> fill) {
      return values->Make(size_bytes, fill);
    };
  }
  PushContext ContextOf(const PushPart&) { return {Memory()}; }

  template <typename Request>
  absl::StatusOr<Request> Read() {
    return ReadAs(static_cast<Request*>(nullptr));
  }

  template <typename Reply>
  ReplyCallback<Reply> Answer() {
    return [answer = std::move(answer_)](const absl::StatusOr<Reply>& reply) {
      if (!reply.ok()) return answer(reply.status());
      answer(Encode(*reply));
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
  static grpc::ByteBuffer Encode(const Frame<Header>& frame) {
    return EncodeFrame(frame.header, frame.data);
  }
  template <typename Message>
  static grpc::ByteBuffer Encode(const Message& message) {
    return EncodeFrame(message, absl::Cord());
  }

  const DataCallTarget target_;
  const grpc::ByteBuffer& bytes_;
  const CallCheck check_;
  BytesCallback answer_;
};

}  // namespace

const AnyMethod* RowOf(DataMethod method) {
  switch (method) {
    case DataMethod::kLoad:
      return &kLoadCall;
    case DataMethod::kPull:
      return &kPullCall;
    case DataMethod::kPush:
      return &kPushCall;
    case DataMethod::kPullRows:
      return &kPullRowsCall;
    case DataMethod::kReadSnapshot:
      return &kReadSnapshotCall;
  }
  return nullptr;
}

void PassDataCall(const DataCallTarget& target, DataMethod method,
                  const grpc::ByteBuffer& request, const CallCheck& check,
                  absl::Time deadline, BytesCallback answer) {
  Dispatch(method, BytesAdapter(target, request, check, std::move(answer)),
           deadline);
}

}  // namespace muster
