#include "ps_server/service/parameter_service.h"

#include <utility>

#include "common/rpc/call_table.h"
#include "common/tensor/buffer_pool.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/call_service.h"
#include "ps_server/service/data_call.h"

namespace muster {
namespace {

class ParameterServiceShell : public CallService {
 public:
  ParameterServiceShell(DataLink* shard, ServedCalls* calls, const Clock* clock,
                        const Entrance* entrance)
      : CallService(calls, clock, entrance), shard_(shard) {
    AddDataCall(kLoadCall, DataMethod::kLoad);
    AddDataCall(kPullCall, DataMethod::kPull);
    AddDataCall(kPushCall, DataMethod::kPush);
    AddDataCall(kPullRowsCall, DataMethod::kPullRows);
    AddDataCall(kReadSnapshotCall, DataMethod::kReadSnapshot);
  }

 private:
  // A call with tensors.
  void AddDataCall(const AnyMethod& row, DataMethod method) {
    AddCall(row, [this, method](const grpc::ByteBuffer& request,
                                const Caller& caller, absl::Time deadline,
                                BytesCallback answer) {
      PassDataCall({shard_, &values_}, method, request,
                   {&entrance(), RowOf(method), &caller}, deadline,
                   std::move(answer));
    });
  }

  DataLink* const shard_;
  // The memory of answers on their way.
  BufferPool values_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeParameterService(DataLink* shard,
                                                    ServedCalls* calls,
                                                    const Clock* clock,
                                                    const Entrance* entrance) {
  return std::make_unique<ParameterServiceShell>(shard, calls, clock, entrance);
}

}  // namespace muster
