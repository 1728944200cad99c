#ifndef PS_SERVER_DATA_CALL_H_
#define PS_SERVER_DATA_CALL_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/exchange_codec.h"
#include "common/rpc/parameter_link.h"
#include "grpcpp/support/byte_buffer.h"

namespace muster {

using BytesCallback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

// Carries out one call whose request or reply has tensors: reads the request,
// calls `shard`, and gives the reply's bytes to `answer`, once, possibly before
// it returns. The bytes share the request's and the shard's memory.
// Errors: the shard's; InvalidArgument for a request that is none,
// Unimplemented for a method that is none.
void PassDataCall(ParameterLink* shard, const ExchangeBody& request,
                  absl::Time deadline, BytesCallback answer);

}  // namespace muster

#endif  // PS_SERVER_DATA_CALL_H_
