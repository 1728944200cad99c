#ifndef COMMON_RPC_SERVER_UNKNOWN_CALLS_H_
#define COMMON_RPC_SERVER_UNKNOWN_CALLS_H_

#include <string>
#include <utility>

#include "grpcpp/generic/async_generic_service.h"

namespace muster {

// Answers the calls that a server has no other service for: Unimplemented, with
// words that say what it is instead of what was looked for. Thread-safe.
class UnknownCalls : public grpc::CallbackGenericService {
 public:
  explicit UnknownCalls(std::string words) : words_(std::move(words)) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  const std::string words_;
};

}  // namespace muster

#endif  // COMMON_RPC_SERVER_UNKNOWN_CALLS_H_
