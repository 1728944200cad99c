#include "ps_server/caller/cluster_check.h"

#include <map>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/task_name.h"

namespace muster {
namespace {

using Addresses = std::map<int32_t, std::string>;

Addresses AddressesOf(const ClusterDef& cluster, const std::string& job_name) {
  Addresses addresses;
  for (const JobDef& job : cluster.job()) {
    if (job.name() != job_name) continue;
    addresses.insert(job.tasks().begin(), job.tasks().end());
  }
  return addresses;
}

std::string AddressText(const Addresses& addresses, int32_t index) {
  const auto it = addresses.find(index);
  return it == addresses.end()
             ? "nothing"
             : absl::StrCat("'", absl::CHexEscape(it->second.substr(0, 260)),
                            "'");
}

absl::Status OtherCluster(const HelloRequest& request, int32_t ps_index,
                          const std::string& difference) {
  return absl::InvalidArgumentError(absl::StrCat(
      "Hello from ", TaskName(request.sender()), " to /job:ps/task:", ps_index,
      ": another cluster: ", difference, "; give both tasks the same cluster"));
}

absl::Status CheckPsList(const HelloRequest& request, const ClusterDef& cluster,
                         int32_t ps_index) {
  const Addresses own = AddressesOf(cluster, "ps");
  const Addresses theirs(request.ps_addresses().begin(),
                         request.ps_addresses().end());
  Addresses all = own;
  all.insert(theirs.begin(), theirs.end());
  for (const auto& [index, address] : all) {
    if (AddressText(own, index) == AddressText(theirs, index)) continue;
    return OtherCluster(
        request, ps_index,
        absl::StrCat("/job:ps/task:", index, " is ", AddressText(theirs, index),
                     " to the caller and ", AddressText(own, index),
                     " to this ps"));
  }
  return absl::OkStatus();
}

absl::Status CheckCaller(const HelloRequest& request, const ClusterDef& cluster,
                         int32_t ps_index) {
  const TaskKey caller = KeyOf(request.sender());
  const Addresses known = AddressesOf(cluster, caller.first);
  if (known.empty()) return absl::OkStatus();
  const Addresses claimed = {{caller.second, request.sender_address()}};
  if (AddressText(known, caller.second) ==
      AddressText(claimed, caller.second)) {
    return absl::OkStatus();
  }
  return OtherCluster(
      request, ps_index,
      absl::StrCat(TaskName(caller), " is ",
                   AddressText(claimed, caller.second), " to the caller and ",
                   AddressText(known, caller.second), " to this ps"));
}

}  // namespace

absl::Status CheckHello(const HelloRequest& request, const ClusterDef& cluster,
                        int32_t ps_index) {
  if (request.protocol_version() != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Hello from ", TaskName(request.sender()), ": it speaks protocol ",
        request.protocol_version(), " (version '",
        absl::CHexEscape(request.muster_version().substr(0, 40)),
        "'), this ps speaks protocol ", kProtocolVersion, " (version '",
        kMusterVersion, "'); ", kOtherProtocolAdvice));
  }
  if (cluster.job().empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckPsList(request, cluster, ps_index));
  if (request.ps_index() != ps_index) {
    return OtherCluster(
        request, ps_index,
        absl::StrCat("the caller wants /job:ps/task:", request.ps_index()));
  }
  if (!request.sender().namespace_().empty()) return absl::OkStatus();
  return CheckCaller(request, cluster, ps_index);
}

}  // namespace muster
