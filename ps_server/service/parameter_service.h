#ifndef PS_SERVER_SERVICE_PARAMETER_SERVICE_H_
#define PS_SERVER_SERVICE_PARAMETER_SERVICE_H_

#include <memory>

#include "common/base/clock.h"
#include "common/rpc/served_calls.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/entrance.h"

namespace muster {

// ParameterService over gRPC: each call with tensors becomes one of `shard`,
// each other one of `calls`, which is null where there are none. Frames come
// and go as raw buffers, their tensor bytes never pass through a protobuf
// object. Thread-safe. The arguments outlive the service.
std::unique_ptr<grpc::Service> MakeParameterService(
    DataLink* shard, ServedCalls* calls, const Clock* clock,
    const Entrance* entrance = OpenEntrance());

}  // namespace muster

#endif  // PS_SERVER_SERVICE_PARAMETER_SERVICE_H_
