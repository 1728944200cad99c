#include "common/rpc/server/unknown_calls.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/rpc/status_conversion.h"

namespace muster {
namespace {

constexpr size_t kMostOfName = 100;

// Owns itself, as gRPC's reactors of one call do.
class Refusal : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownCalls::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return new Refusal(ToGrpcStatus(absl::UnimplementedError(absl::StrCat(
      EscapeForLog(context->method(), kMostOfName), ": ", words_))));
}

}  // namespace muster
