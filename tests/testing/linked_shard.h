#ifndef TESTS_TESTING_LINKED_SHARD_H_
#define TESTS_TESTING_LINKED_SHARD_H_

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/parameter_link.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "proto/shared_memory_service.pb.h"
#include "ps_server/service/shard_server.h"
#include "ps_server/service/shared_memory_listener.h"
#include "ps_server/service/tcp_listener.h"
#include "tests/testing/loopback_server.h"
#include "tests/testing/reported_lines.h"
#include "worker/client/link/shared_memory_link.h"
#include "worker/client/link/tcp_link.h"

namespace muster {

enum class LinkKind { kInProcess, kGrpc, kSharedMemory, kTcp };

inline constexpr LinkKind kAllLinks[] = {LinkKind::kInProcess, LinkKind::kGrpc,
                                         LinkKind::kSharedMemory,
                                         LinkKind::kTcp};

inline const char* NameOf(LinkKind kind) {
  switch (kind) {
    case LinkKind::kInProcess:
      return "InProcess";
    case LinkKind::kGrpc:
      return "Grpc";
    case LinkKind::kSharedMemory:
      return "SharedMemory";
    case LinkKind::kTcp:
      return "Tcp";
  }
  return "";
}

inline std::ostream& operator<<(std::ostream& out, LinkKind kind) {
  return out << NameOf(kind);
}

// A shard and ways to it: the same tests run over each. But in this process
// there is a real server on a free loopback port.
class LinkedShard {
 public:
  struct Options {
    ShardServer::Options shard;
    // Over shared memory and TCP: whether tensors may take no other way.
    bool required = true;
    // The service's answer instead of the listener's offer.
    SharedMemoryOffer other_offer;
    // Offer no memory.
    bool offers_none = false;
  };

  LinkedShard(LinkKind kind, Options options);
  LinkedShard(LinkKind kind, ShardServer::Options shard)
      : LinkedShard(kind, Options{std::move(shard), true, {}, false}) {}
  ShardServer& server() { return server_; }
  // A link that lives as long as this. Over shared memory its first Hello
  // connects it.
  ParameterLink& link() { return *link_; }
  // Another one; null in this process. It ends before this.
  std::unique_ptr<ParameterLink> NewLink();

  // Null unless it is shared memory that is offered.
  SharedMemoryListener* listener() { return listener_.get(); }
  // The service's answer from here on.
  void OfferInstead(SharedMemoryOffer offer) {
    options_.other_offer = std::move(offer);
  }
  // The memory is gone, the ps is not.
  void StopListening() { listener_.reset(); }
  // The lines that the links said.
  std::vector<std::string> said() const { return said_.lines(); }

 private:
  void Serve();
  void ServeSharedMemory();
  void ServeTcp();
  std::unique_ptr<ParameterLink> Connect();

  const LinkKind kind_;
  Options options_;
  ShardServer server_;
  std::unique_ptr<SharedMemoryListener> listener_;
  std::unique_ptr<TcpListener> tcp_listener_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<LoopbackServer> grpc_server_;

  ReportedLines said_;

  // Last: uses all of the above.
  std::unique_ptr<ParameterLink> own_link_;
  ParameterLink* link_ = nullptr;
};

}  // namespace muster

#endif  // TESTS_TESTING_LINKED_SHARD_H_
