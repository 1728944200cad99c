#ifndef PS_SERVER_SERVICE_CALL_SERVICE_H_
#define PS_SERVER_SERVICE_CALL_SERVICE_H_

#include <functional>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/link.h"
#include "common/rpc/method.h"
#include "common/rpc/served_calls.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace muster {

// Calls over gRPC, by their rows in the call table instead of a generated base.
// Thread-safe.
class CallService : public grpc::Service {
 public:
  // Passes on each call that `calls` has a handler for now. Both outlive the
  // service.
  CallService(ServedCalls* calls, const Clock* clock);

 protected:
  // Answers a call from its bytes, which are there until it has.
  using Handler =
      std::function<void(const grpc::ByteBuffer& request, absl::Time deadline,
                         ReplyCallback<grpc::ByteBuffer> done)>;
  using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

  void AddCall(const AnyMethod& method, Handler handler);
  void AddStream(const AnyMethod& method,
                 std::function<Stream*(grpc::CallbackServerContext*)> open);

 private:
  const Clock* const clock_;
  int methods_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_CALL_SERVICE_H_
