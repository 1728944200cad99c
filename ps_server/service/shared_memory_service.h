#ifndef PS_SERVER_SERVICE_SHARED_MEMORY_SERVICE_H_
#define PS_SERVER_SERVICE_SHARED_MEMORY_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "proto/shared_memory_service.pb.h"

namespace muster {

// SharedMemoryService over gRPC: tells who asks where this ps offers memory.
// Thread-safe.
std::unique_ptr<grpc::Service> MakeSharedMemoryService(SharedMemoryOffer offer);

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SHARED_MEMORY_SERVICE_H_
