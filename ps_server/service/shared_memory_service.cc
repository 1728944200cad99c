#include "ps_server/service/shared_memory_service.h"

#include <utility>

#include "grpcpp/support/server_callback.h"
#include "proto/shared_memory_service.grpc.pb.h"

namespace muster {
namespace {

class SharedMemoryServiceShell : public SharedMemoryService::CallbackService {
 public:
  explicit SharedMemoryServiceShell(SharedMemoryOffer offer)
      : offer_(std::move(offer)) {}

  grpc::ServerUnaryReactor* Offer(grpc::CallbackServerContext* context,
                                  const SharedMemoryOfferRequest* /*request*/,
                                  SharedMemoryOffer* reply) override {
    *reply = offer_;
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  using SharedMemoryService::CallbackService::Offer;

  const SharedMemoryOffer offer_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSharedMemoryService(
    SharedMemoryOffer offer) {
  return std::make_unique<SharedMemoryServiceShell>(std::move(offer));
}

}  // namespace muster
