#ifndef PS_SERVER_SERVICE_DATA_CALL_H_
#define PS_SERVER_SERVICE_DATA_CALL_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/frame/exchange_codec.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps_server/block/buffer_pool.h"
#include "ps_server/service/data_link.h"

namespace muster {

using BytesCallback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

struct DataCallTarget {
  // Both outlive every answer.
  DataLink* shard = nullptr;
  // The memory of values; an answer may outlive it.
  BufferPool* values = nullptr;
};

// Carries out one call whose request or reply has tensors: reads the request,
// calls the shard, and gives the reply's bytes to `answer`, once, possibly
// before it returns.
// Errors: the shard's; InvalidArgument for a request that is none,
// Unimplemented for a method that is none.
void PassDataCall(const DataCallTarget& target, const ExchangeBody& request,
                  absl::Time deadline, BytesCallback answer);

}  // namespace muster

#endif  // PS_SERVER_SERVICE_DATA_CALL_H_
