#include "worker/client/link/grpc_parameter_link.h"

#include <utility>

#include "common/rpc/call_table.h"
#include "common/rpc/frame/frame_codec.h"

namespace muster {
namespace {

// Sends a request that is answered by a frame.
template <typename Header>
void SendFrame(UnaryCaller* caller, const AnyMethod& method,
               grpc::ByteBuffer request, absl::Time deadline,
               ReplyCallback<Frame<Header>> done) {
  caller->Call(
      method.path, std::move(request), deadline,
      [done = std::move(done)](const absl::StatusOr<grpc::ByteBuffer>& bytes) {
        if (!bytes.ok()) return done(bytes.status());
        done(DecodeFrame<Header>(*bytes));
      });
}

}  // namespace

GrpcParameterLink::GrpcParameterLink(
    const PeerName& peer,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const ChannelSettings& settings)
    : control_(peer, PeerChannel::Opener(peer.address, credentials, settings)),
      data_(peer, PeerChannel::Opener(peer.address, credentials, settings)) {}

void GrpcParameterLink::CallBytes(const AnyMethod& method, std::string request,
                                  absl::Time deadline,
                                  ReplyCallback<std::string> done) {
  control_.CallBytes(method, request, deadline, std::move(done));
}

void GrpcParameterLink::Load(Frame<LoadPart> request, absl::Time deadline,
                             ReplyCallback<LoadReply> done) {
  SendFrame<LoadReply>(
      &data_, kLoadCall, EncodeFrame(request.header, request.data), deadline,
      [done = std::move(done)](const absl::StatusOr<Frame<LoadReply>>& reply) {
        if (!reply.ok()) return done(reply.status());
        done(reply->header);
      });
}

void GrpcParameterLink::Pull(const PullRequest& request, absl::Time deadline,
                             ReplyCallback<Frame<PullReply>> done) {
  SendFrame(&data_, kPullCall, EncodeFrame(request, absl::Cord()), deadline,
            std::move(done));
}

void GrpcParameterLink::Push(Frame<PushPart> request, absl::Time deadline,
                             ReplyCallback<Frame<PushReply>> done) {
  SendFrame(&data_, kPushCall, EncodeFrame(request.header, request.data),
            deadline, std::move(done));
}

void GrpcParameterLink::PullRows(Frame<PullRowsRequest> request,
                                 absl::Time deadline,
                                 ReplyCallback<Frame<PullRowsReply>> done) {
  SendFrame(&data_, kPullRowsCall, EncodeFrame(request.header, request.data),
            deadline, std::move(done));
}

void GrpcParameterLink::ReadSnapshot(const ReadSnapshotRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<Frame<SnapshotPart>> done) {
  SendFrame(&data_, kReadSnapshotCall, EncodeFrame(request, absl::Cord()),
            deadline, std::move(done));
}

}  // namespace muster
