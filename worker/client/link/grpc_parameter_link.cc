#include "worker/client/link/grpc_parameter_link.h"

#include <utility>

#include "common/rpc/frame/frame_codec.h"

namespace muster {
namespace {

constexpr char kHello[] = "/muster.ParameterService/Hello";
constexpr char kDefine[] = "/muster.ParameterService/Define";
constexpr char kSeal[] = "/muster.ParameterService/Seal";
constexpr char kBeginSnapshot[] = "/muster.ParameterService/BeginSnapshot";
constexpr char kEndSnapshot[] = "/muster.ParameterService/EndSnapshot";
constexpr char kOffer[] = "/muster.SharedMemoryService/Offer";

// Sends a request that is answered by a frame.
template <typename Header>
void SendFrame(StreamCaller* caller, const ExchangeBody& request,
               absl::Time deadline, ReplyCallback<Frame<Header>> done) {
  caller->Call(
      request, deadline,
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
    : control_(peer, OpenChannel(peer.address, credentials, settings)),
      data_(peer, OpenChannel(peer.address, credentials, settings)) {}

void GrpcParameterLink::Hello(const HelloRequest& request, absl::Time deadline,
                              ReplyCallback<HelloReply> done) {
  control_.CallMessage(kHello, request, deadline, std::move(done));
}

void GrpcParameterLink::Define(const DefineRequest& request,
                               absl::Time deadline,
                               ReplyCallback<DefineReply> done) {
  control_.CallMessage(kDefine, request, deadline, std::move(done));
}

void GrpcParameterLink::Load(Frame<LoadPart> request, absl::Time deadline,
                             ReplyCallback<LoadReply> done) {
  SendFrame<LoadReply>(
      &data_, {DataMethod::kLoad, EncodeFrame(request.header, request.data)},
      deadline,
      [done = std::move(done)](const absl::StatusOr<Frame<LoadReply>>& reply) {
        if (!reply.ok()) return done(reply.status());
        done(reply->header);
      });
}

void GrpcParameterLink::Seal(const SealRequest& request, absl::Time deadline,
                             ReplyCallback<SealReply> done) {
  control_.CallMessage(kSeal, request, deadline, std::move(done));
}

void GrpcParameterLink::Pull(const PullRequest& request, absl::Time deadline,
                             ReplyCallback<Frame<PullReply>> done) {
  SendFrame(&data_, {DataMethod::kPull, EncodeFrame(request, absl::Cord())},
            deadline, std::move(done));
}

void GrpcParameterLink::Push(Frame<PushPart> request, absl::Time deadline,
                             ReplyCallback<Frame<PushReply>> done) {
  SendFrame(&data_,
            {DataMethod::kPush, EncodeFrame(request.header, request.data)},
            deadline, std::move(done));
}

void GrpcParameterLink::BeginSnapshot(const BeginSnapshotRequest& request,
                                      absl::Time deadline,
                                      ReplyCallback<BeginSnapshotReply> done) {
  control_.CallMessage(kBeginSnapshot, request, deadline, std::move(done));
}

void GrpcParameterLink::ReadSnapshot(const ReadSnapshotRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<Frame<SnapshotPart>> done) {
  SendFrame(&data_,
            {DataMethod::kReadSnapshot, EncodeFrame(request, absl::Cord())},
            deadline, std::move(done));
}

void GrpcParameterLink::EndSnapshot(const EndSnapshotRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<EndSnapshotReply> done) {
  control_.CallMessage(kEndSnapshot, request, deadline, std::move(done));
}

void GrpcParameterLink::OfferSharedMemory(
    absl::Time deadline, ReplyCallback<SharedMemoryOffer> done) {
  control_.CallMessage(kOffer, SharedMemoryOfferRequest(), deadline,
                       std::move(done));
}

}  // namespace muster
