#include "worker/client/grpc_parameter_link.h"

#include <utility>

#include "common/rpc/frame_codec.h"

namespace muster {
namespace {

constexpr char kHello[] = "/muster.ParameterService/Hello";
constexpr char kDefine[] = "/muster.ParameterService/Define";
constexpr char kLoad[] = "/muster.ParameterService/Load";
constexpr char kSeal[] = "/muster.ParameterService/Seal";
constexpr char kPull[] = "/muster.ParameterService/Pull";
constexpr char kPush[] = "/muster.ParameterService/Push";
constexpr char kBeginSnapshot[] = "/muster.ParameterService/BeginSnapshot";
constexpr char kReadSnapshot[] = "/muster.ParameterService/ReadSnapshot";
constexpr char kEndSnapshot[] = "/muster.ParameterService/EndSnapshot";
constexpr char kOffer[] = "/muster.SharedMemoryService/Offer";

// Sends a request that is a frame.
template <typename Header, typename Reply>
void SendFrame(UnaryCaller* caller, const char* method,
               const Frame<Header>& request, absl::Time deadline,
               ReplyCallback<Reply> done) {
  caller->CallBytes<Reply>(method, EncodeFrame(request.header, request.data),
                           deadline, std::move(done));
}

// Sends a message, with tensors or without, that is answered by a frame.
template <typename Header>
void ReceiveFrame(UnaryCaller* caller, const char* method,
                  grpc::ByteBuffer request, absl::Time deadline,
                  ReplyCallback<Frame<Header>> done) {
  caller->Call(
      method, std::move(request), deadline,
      [done = std::move(done)](absl::StatusOr<grpc::ByteBuffer> bytes) {
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
  SendFrame(&data_, kLoad, request, deadline, std::move(done));
}

void GrpcParameterLink::Seal(const SealRequest& request, absl::Time deadline,
                             ReplyCallback<SealReply> done) {
  control_.CallMessage(kSeal, request, deadline, std::move(done));
}

void GrpcParameterLink::Pull(const PullRequest& request, absl::Time deadline,
                             ReplyCallback<Frame<PullReply>> done) {
  ReceiveFrame(&data_, kPull, EncodeFrame(request, absl::Cord()), deadline,
               std::move(done));
}

void GrpcParameterLink::Push(Frame<PushPart> request, absl::Time deadline,
                             ReplyCallback<Frame<PushReply>> done) {
  ReceiveFrame(&data_, kPush, EncodeFrame(request.header, request.data),
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
  ReceiveFrame(&data_, kReadSnapshot, EncodeFrame(request, absl::Cord()),
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
