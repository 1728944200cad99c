#ifndef PS_SERVER_DATA_CALL_H_
#define PS_SERVER_DATA_CALL_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/exchange_codec.h"
#include "common/rpc/parameter_link.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps_server/buffer_pool.h"

namespace muster {

using BytesCallback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

struct DataCallTarget {
  // Both outlive every answer.
  ParameterLink* shard = nullptr;
  // Where values are copied to, which are the shard's own until it is told that
  // they were taken; answers may then be kept. Null to hand them on as they
  // are: their bytes are valid until `answer` returns.
  BufferPool* copies = nullptr;
};

// Carries out one call whose request or reply has tensors: reads the request,
// calls the shard, and gives the reply's bytes to `answer`, once, possibly
// before it returns.
// Errors: the shard's; InvalidArgument for a request that is none,
// Unimplemented for a method that is none.
void PassDataCall(const DataCallTarget& target, const ExchangeBody& request,
                  absl::Time deadline, BytesCallback answer);

}  // namespace muster

#endif  // PS_SERVER_DATA_CALL_H_
