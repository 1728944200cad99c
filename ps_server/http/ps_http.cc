#include "ps_server/http/ps_http.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/cluster/address.h"
#include "common/cluster/task_id.h"
#include "common/rpc/peer_channel.h"
#include "common/rpc/server/listen_address.h"
#include "ps_server/caller/known_callers.h"
#include "spdlog/spdlog.h"

namespace muster {
namespace {

Looker::Options OptionsOfLooker(const PsHttp::Options& options) {
  Looker::Options looker;
  looker.task_index = options.task_index;
  looker.shard = options.shard;
  looker.coordination = options.coordination;
  looker.clock = options.clock;
  for (const JobDef& job : options.cluster.job()) {
    if (job.name() != kPsJob) continue;
    for (const auto& [index, address] : job.tasks()) {
      looker.num_ps = std::max(looker.num_ps, index + 1);
      if (index == options.task_index || options.task_index != 0) continue;
      looker.others[index] = PeerChannel::Opener(
          address,
          CredentialsOfPs(options.credentials, options.cluster, index));
    }
  }
  return looker;
}

std::string HostOf(const std::string& address) {
  const absl::StatusOr<Address> parsed = ParseAddress(address);
  return parsed.ok() ? parsed->host : "";
}

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> CredentialsOfPs(
    const TaskCredentials& credentials, const ClusterDef& cluster,
    int32_t index) {
  const TaskKey process = ProcessOfPs(cluster, index);
  return credentials.channel_to(process.first, process.second);
}

PsHttp::PsHttp(const Options& options) : looker_(OptionsOfLooker(options)) {}

absl::StatusOr<std::unique_ptr<PsHttp>> PsHttp::Start(const Options& options) {
  auto http = absl::WrapUnique(new PsHttp(options));
  RETURN_IF_ERROR(Annotate(http->Serve(options), "--http_address"));
  return http;
}

absl::Status PsHttp::Serve(const Options& options) {
  const bool has_keys = options.credentials.proves_callers;
  HttpServer::Options http;
  ASSIGN_OR_RETURN(
      http.address,
      ChooseListenAddress(options.address, /*bind=*/"",
                          options.allow_insecure_network || has_keys));
  // Who is on this machine is let in without keys.
  const bool is_tls =
      has_keys && !ChooseListenAddress(options.address, /*bind=*/"",
                                       /*allow_insecure_network=*/false)
                       .ok();
  http.open = is_tls ? options.credentials.accept_over
                     : InsecureCredentials().accept_over;
  http.may_look = [is_tls, entrance = options.entrance](absl::string_view pem) {
    if (!is_tls) return true;
    const Role role = entrance->IdentifyHolder(pem).role;
    return role == Role::kViewer || role == Role::kAdmin;
  };
  http.pages.own_hosts = {
      HostOf(http.address),
      HostOf(AddressOfPs(options.cluster, options.task_index))};
  http.pages.serves = options.serves;
  http.ask = [this](Looker::Reach reach, Looker::Done done) {
    looker_.Ask(reach, std::move(done));
  };
  http.clock = options.clock;
  ASSIGN_OR_RETURN(server_, HttpServer::Start(std::move(http)));
  port_ = server_->port();
  spdlog::info("a page at {}://{}:{}/, beside it /metrics and /healthz",
               is_tls ? "https" : "http",
               options.address.substr(0, options.address.rfind(':')), port_);
  return absl::OkStatus();
}

}  // namespace muster
