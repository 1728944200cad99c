#ifndef PS_SERVER_SERVICE_CALL_SERVICE_H_
#define PS_SERVER_SERVICE_CALL_SERVICE_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/link.h"
#include "common/rpc/method.h"
#include "common/rpc/served_calls.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/entrance.h"

namespace muster {

// Calls over gRPC, by their rows in the call table instead of a generated base.
// Who may not make one gets the error of the entrance. Thread-safe.
class CallService : public grpc::Service {
 public:
  // Passes on each call that `calls` has a handler for now, none if it is null.
  // All outlive the service.
  CallService(ServedCalls* calls, const Clock* clock,
              const Entrance* entrance = OpenEntrance());

 protected:
  // Answers a call from its bytes, which are there until it has. It checks the
  // sender.
  using Handler = std::function<void(const grpc::ByteBuffer& request,
                                     const Caller& caller, absl::Time deadline,
                                     ReplyCallback<grpc::ByteBuffer> done)>;

  void AddCall(const AnyMethod& method, Handler handler);

  const Entrance& entrance() const { return *entrance_; }

 private:
  // One of the calls without tensors.
  void Pass(ServedCalls* calls, const AnyMethod& method, std::string request,
            const Caller& caller, absl::Time deadline,
            ReplyCallback<grpc::ByteBuffer> done);

  const Clock* const clock_;
  const Entrance* const entrance_;
  int methods_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_CALL_SERVICE_H_
