#ifndef PS_SERVER_SERVICE_COORDINATION_SERVICE_H_
#define PS_SERVER_SERVICE_COORDINATION_SERVICE_H_

#include <memory>

#include "common/base/clock.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "ps_server/service/coordination_server.h"

namespace muster {

// CoordinationService over gRPC: each call becomes a call of `server`. Only ps
// task 0 has it. Thread-safe. Both arguments outlive the service.
std::unique_ptr<grpc::Service> MakeCoordinationService(
    CoordinationServer* server, const Clock* clock);

}  // namespace muster

#endif  // PS_SERVER_SERVICE_COORDINATION_SERVICE_H_
