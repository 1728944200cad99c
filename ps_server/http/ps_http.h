#ifndef PS_SERVER_HTTP_PS_HTTP_H_
#define PS_SERVER_HTTP_PS_HTTP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/rpc/credentials.h"
#include "proto/cluster.pb.h"
#include "ps_server/http/http_server.h"
#include "ps_server/http/looker.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/shard_server.h"

namespace muster {

// The credentials of a channel to a ps task.
std::shared_ptr<grpc::ChannelCredentials> CredentialsOfPs(
    const TaskCredentials& credentials, const ClusterDef& cluster,
    int32_t index);

// A ps task's page and metrics (http/README.md). Used by one thread.
class PsHttp {
 public:
  struct Options {
    // --http_address.
    std::string address;
    bool allow_insecure_network = false;
    TaskCredentials credentials;
    ClusterDef cluster;
    int32_t task_index = 0;
    // Whether the task serves, on any thread.
    std::function<bool()> serves;
    // All outlive this; `shard` and `coordination`, which is null but on task
    // 0, are closed before it ends.
    ShardServer* shard = nullptr;
    CoordinationServer* coordination = nullptr;
    const Entrance* entrance = nullptr;
    const Clock* clock = nullptr;
  };

  // Errors: Unauthenticated for a network that was not allowed; Unavailable for
  // a taken port; InvalidArgument for an address that is not this machine's.
  static absl::StatusOr<std::unique_ptr<PsHttp>> Start(const Options& options);

  int port() const { return port_; }
  // Frees the port. Repeatable.
  void StopServing() { server_.reset(); }

 private:
  explicit PsHttp(const Options& options);

  absl::Status Serve(const Options& options);

  // Asked by the server.
  Looker looker_;
  std::unique_ptr<HttpServer> server_;
  int port_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_HTTP_PS_HTTP_H_
