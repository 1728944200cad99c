#include "ps_server/data_call.h"

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/frame_codec.h"
#include "ps_server/serve_call.h"
#include "ps_server/value_memory.h"

namespace muster {
namespace {

// Answers with a message.
template <typename Reply>
ReplyCallback<Reply> AnswerMessage(BytesCallback answer) {
  return [answer = std::move(answer)](const absl::StatusOr<Reply>& reply) {
    if (!reply.ok()) return answer(reply.status());
    answer(EncodeFrame(*reply, absl::Cord()));
  };
}

// Answers with a frame.
template <typename Header>
ReplyCallback<Frame<Header>> AnswerFrame(BytesCallback answer) {
  return
      [answer = std::move(answer)](const absl::StatusOr<Frame<Header>>& reply) {
        if (!reply.ok()) return answer(reply.status());
        answer(EncodeFrame(reply->header, reply->data));
      };
}

ValueMemory MemoryOf(BufferPool* values) {
  return [values](size_t size_bytes, absl::FunctionRef<void(char*)> fill) {
    return values->Make(size_bytes, fill);
  };
}

}  // namespace

void PassDataCall(const DataCallTarget& target, const ExchangeBody& request,
                  absl::Time deadline, BytesCallback answer) {
  const grpc::ByteBuffer& bytes = request.message;
  switch (request.method) {
    case DataMethod::kLoad: {
      absl::StatusOr<Frame<LoadPart>> load = DecodeFrame<LoadPart>(bytes);
      if (!load.ok()) return answer(load.status());
      return target.shard->Load(*std::move(load), deadline,
                                AnswerMessage<LoadReply>(std::move(answer)));
    }
    case DataMethod::kPull: {
      const absl::StatusOr<PullRequest> pull = ParseRaw<PullRequest>(bytes);
      if (!pull.ok()) return answer(pull.status());
      return target.shard->PullInto(*pull, MemoryOf(target.values), deadline,
                                    AnswerFrame<PullReply>(std::move(answer)));
    }
    case DataMethod::kPush: {
      absl::StatusOr<Frame<PushPart>> push = DecodeFrame<PushPart>(bytes);
      if (!push.ok()) return answer(push.status());
      return target.shard->PushInto(*std::move(push), MemoryOf(target.values),
                                    deadline,
                                    AnswerFrame<PushReply>(std::move(answer)));
    }
    case DataMethod::kReadSnapshot: {
      const absl::StatusOr<ReadSnapshotRequest> read =
          ParseRaw<ReadSnapshotRequest>(bytes);
      if (!read.ok()) return answer(read.status());
      return target.shard->ReadSnapshot(
          *read, deadline, AnswerFrame<SnapshotPart>(std::move(answer)));
    }
  }
  answer(absl::UnimplementedError(
      absl::StrCat("there is no call ", static_cast<int>(request.method),
                   " with tensors; a newer worker?")));
}

}  // namespace muster
