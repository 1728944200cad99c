#ifndef PS_SERVER_SERVICE_CARRY_OUT_H_
#define PS_SERVER_SERVICE_CARRY_OUT_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/parameter_link.h"
#include "ps_server/service/data_link.h"
#include "ps_server/shard/push_context.h"

namespace muster {

// Reads the request, and has call(request, done) answer it.
template <typename Request, typename Reply, typename Form, typename Call>
void ReadAndCall(Form* form, const Call& call) {
  absl::StatusOr<Request> request = form->template Read<Request>();
  if (!request.ok()) return form->Fail(request.status());
  call(*std::move(request), form->template Answer<Reply>());
}

// Carries out one call whose request or reply has tensors, whatever its form:
//
//   class Form {
//     // Outlives the answer.
//     DataLink& shard();
//     // Where the values of a pull's answer go, and what is known of a push.
//     ValueMemory Memory();
//     PushContext ContextOf(const PushPart&);
//     // The request, a message or a Frame; once. Errors: InvalidArgument.
//     template <typename Request> absl::StatusOr<Request> Read();
//     // What gives the reply, or an error, to the caller; once.
//     template <typename Reply> ReplyCallback<Reply> Answer();
//     // Gives the caller an error instead.
//     void Fail(const absl::Status&);
//   };
//
// Errors: the shard's; what Read says; Unimplemented for a method that is none.
template <typename Form>
void CarryOut(DataMethod method, Form form, absl::Time deadline) {
  switch (method) {
    case DataMethod::kLoad:
      return ReadAndCall<Frame<LoadPart>, LoadReply>(
          &form, [&](Frame<LoadPart> load, auto done) {
            form.shard().Load(std::move(load), deadline, std::move(done));
          });
    case DataMethod::kPull:
      return ReadAndCall<PullRequest, Frame<PullReply>>(
          &form, [&](const PullRequest& pull, auto done) {
            form.shard().PullInto(pull, form.Memory(), deadline,
                                  std::move(done));
          });
    case DataMethod::kPush:
      return ReadAndCall<Frame<PushPart>, Frame<PushReply>>(
          &form, [&](Frame<PushPart> push, auto done) {
            PushContext context = form.ContextOf(push.header);
            form.shard().PushInto(std::move(push), std::move(context), deadline,
                                  std::move(done));
          });
    case DataMethod::kReadSnapshot:
      return ReadAndCall<ReadSnapshotRequest, Frame<SnapshotPart>>(
          &form, [&](const ReadSnapshotRequest& read, auto done) {
            form.shard().ReadSnapshot(read, deadline, std::move(done));
          });
  }
  form.Fail(absl::UnimplementedError(
      absl::StrCat("there is no call ", static_cast<uint32_t>(method),
                   " with tensors; a newer worker?")));
}

}  // namespace muster

#endif  // PS_SERVER_SERVICE_CARRY_OUT_H_
