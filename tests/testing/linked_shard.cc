#include "tests/testing/linked_shard.h"

#include <utility>

#include "common/rpc/byte_channel.h"
#include "common/rpc/credentials.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "ps_server/service/parameter_service.h"
#include "worker/client/link/grpc_parameter_link.h"

namespace muster {

LinkedShard::LinkedShard(LinkKind kind, Options options)
    : kind_(kind), options_(std::move(options)), server_(options_.shard) {
  if (kind_ == LinkKind::kInProcess) {
    link_ = &server_;
    return;
  }
  Serve();
  own_link_ = Connect();
  link_ = own_link_.get();
}

void LinkedShard::Serve() {
  services_.push_back(
      MakeParameterService(&server_, &server_.calls(), options_.shard.clock));
  if (kind_ == LinkKind::kSharedMemory && !options_.offers_none) {
    ServeSharedMemory();
  }
  if (kind_ == LinkKind::kTcp) ServeTcp();
  grpc_server_ = std::make_unique<LoopbackServer>(
      [this](grpc::ServerBuilder* builder) {
        for (const auto& service : services_) {
          builder->RegisterService(service.get());
        }
      },
      [this](FileDescriptor connection) {
        if (tcp_listener_ == nullptr) return;
        tcp_listener_->Accept(std::move(connection));
      });
}

void LinkedShard::ServeSharedMemory() {
  SharedMemoryListener::Options listen;
  listen.shard = &server_;
  listen.clock = options_.shard.clock;
  absl::StatusOr<std::unique_ptr<SharedMemoryListener>> listener =
      SharedMemoryListener::Start(listen);
  EXPECT_TRUE(listener.ok()) << listener.status();
  listener_ = *std::move(listener);
  services_.push_back(MakeSharedMemoryService(
      [this](const Caller& caller) {
        return options_.other_offer.socket_name().empty()
                   ? listener_->OfferTo(caller)
                   : absl::StatusOr<SharedMemoryOffer>(options_.other_offer);
      },
      options_.shard.clock));
}

void LinkedShard::ServeTcp() {
  TcpListener::Options listen;
  listen.shard = &server_;
  listen.clock = options_.shard.clock;
  listen.open = InsecureCredentials().accept_over;
  absl::StatusOr<std::unique_ptr<TcpListener>> listener =
      TcpListener::Start(std::move(listen));
  EXPECT_TRUE(listener.ok()) << listener.status();
  tcp_listener_ = *std::move(listener);
  services_.push_back(MakeTcpLinkService(
      [this](const Caller& caller) { return tcp_listener_->OfferTo(caller); },
      options_.shard.clock));
}

std::unique_ptr<ParameterLink> LinkedShard::NewLink() {
  return kind_ == LinkKind::kInProcess ? nullptr : Connect();
}

std::unique_ptr<ParameterLink> LinkedShard::Connect() {
  const PeerName peer{"/job:ps/task:0", grpc_server_->address()};
  auto grpc = std::make_unique<GrpcParameterLink>(
      peer, grpc::InsecureChannelCredentials());
  if (kind_ == LinkKind::kGrpc) return grpc;
  if (kind_ == LinkKind::kTcp) {
    TcpLink::Options options;
    options.peer = peer;
    options.open = [](FileDescriptor socket) {
      return MakePlainChannel(std::move(socket));
    };
    options.required = options_.required;
    options.reporter = said_.reporter();
    options.clock = options_.shard.clock;
    return std::make_unique<TcpLink>(std::move(options), std::move(grpc));
  }
  SharedMemoryLink::Options options;
  options.peer = peer;
  options.required = options_.required;
  options.reporter = said_.reporter();
  options.clock = options_.shard.clock;
  return std::make_unique<SharedMemoryLink>(std::move(options),
                                            std::move(grpc));
}

}  // namespace muster
