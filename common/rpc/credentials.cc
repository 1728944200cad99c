#include "common/rpc/credentials.h"

namespace muster {

TaskCredentials InsecureCredentials() {
  return {[](const std::string&, int32_t) {
            return grpc::InsecureChannelCredentials();
          },
          grpc::InsecureServerCredentials(), /*proves_callers=*/false,
          /*wall_time=*/nullptr};
}

}  // namespace muster
