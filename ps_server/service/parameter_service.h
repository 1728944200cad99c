#ifndef PS_SERVER_SERVICE_PARAMETER_SERVICE_H_
#define PS_SERVER_SERVICE_PARAMETER_SERVICE_H_

#include <memory>

#include "common/base/clock.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "ps_server/service/entrance.h"
#include "ps_server/service/exchange_streams.h"
#include "ps_server/service/shard_server.h"

namespace muster {

// ParameterService over gRPC: each call, unary or on a stream, becomes a call
// of `server`. Frames come and go as raw buffers, their tensor bytes never pass
// through a protobuf object. Thread-safe. The arguments outlive the service.
std::unique_ptr<grpc::Service> MakeParameterService(
    ShardServer* server, ExchangeStreams* streams, const Clock* clock,
    const Entrance* entrance = OpenEntrance());

}  // namespace muster

#endif  // PS_SERVER_SERVICE_PARAMETER_SERVICE_H_
