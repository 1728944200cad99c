#include "worker/task/network_check.h"

#include "common/base/status_macros.h"
#include "common/rpc/server/listen_address.h"

namespace muster {

absl::StatusOr<std::string> CheckNetwork(const ClusterSpec& cluster,
                                         const TaskId& self,
                                         const NetworkChoice& choice,
                                         const Reporter& reporter) {
  for (const std::string& address : cluster.ps_addresses()) {
    RETURN_IF_ERROR(CheckConnectAddress(address, choice.is_trusted));
  }
  if (cluster.empty()) return "";
  const auto own = cluster.AddressOf(self);
  if (!own.ok() && choice.bind.empty()) return "";
  RETURN_IF_ERROR(CheckOthersCanCome(cluster, self, choice.bind, reporter));
  return ChooseListenAddress(own.value_or(""), choice.bind, choice.is_trusted);
}

}  // namespace muster
