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
#include "ps_server/caller/caller.h"

namespace muster {

// Says who calls.
using IdentifyCaller =
    std::function<Caller(const grpc::CallbackServerContext&)>;

// A peer over gRPC, which proves nothing for now.
Caller UnprovenPeer(const grpc::CallbackServerContext& context);

// Calls over gRPC, by their rows in the call table instead of a generated base.
// Who may not make one gets the error of CheckMayCall. Thread-safe.
class CallService : public grpc::Service {
 public:
  // Passes on each call that `calls` has a handler for now. Both outlive the
  // service.
  CallService(ServedCalls* calls, const Clock* clock,
              IdentifyCaller identify = UnprovenPeer);

 protected:
  // Answers a call from its bytes, which are there until it has.
  using Handler =
      std::function<void(const grpc::ByteBuffer& request, absl::Time deadline,
                         ReplyCallback<grpc::ByteBuffer> done)>;
  using Stream = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

  void AddCall(const AnyMethod& method, Handler handler);
  // `open` checks the caller.
  void AddStream(
      const AnyMethod& method,
      std::function<Stream*(const grpc::CallbackServerContext&, const Caller&)>
          open);

 private:
  const Clock* const clock_;
  const IdentifyCaller identify_;
  int methods_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_CALL_SERVICE_H_
