#include "ps_server/service/exchange_streams.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/call_table.h"

namespace muster {
namespace {

absl::Status GoingAway() {
  return absl::UnavailableError("the ps is shutting down");
}

}  // namespace

ExchangeConnection* ExchangeStreams::Open(
    const grpc::CallbackServerContext& context, const Caller& caller) {
  const std::string peer = context.peer();
  const auto connection =
      std::make_shared<ExchangeConnection>(ExchangeConnection::Parts{
          {shard_, &values_},
          caller,
          entrance_,
          clock_,
          [this, peer](ExchangeConnection* ended) { OnDone(peer, ended); }});
  absl::Status refusal = entrance_->Check(kExchangeCall, caller);
  {
    absl::MutexLock lock(&mu_);
    open_.emplace(connection.get(), connection);
    if (++of_peer_[peer] > kMaxOfConnection) {
      refusal = absl::ResourceExhaustedError(
          absl::StrCat("a connection may have ", kMaxOfConnection,
                       " streams of tensors, this would be one more"));
    }
    if (closed_) refusal = GoingAway();
  }
  connection->Start();
  if (!refusal.ok()) connection->End(refusal);
  return connection.get();
}

void ExchangeStreams::Close() {
  std::vector<std::shared_ptr<ExchangeConnection>> open;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    for (const auto& [key, connection] : open_) open.push_back(connection);
  }
  for (const auto& connection : open) connection->End(GoingAway());
}

void ExchangeStreams::OnDone(const std::string& peer,
                             ExchangeConnection* connection) {
  std::shared_ptr<ExchangeConnection> ended;
  absl::MutexLock lock(&mu_);
  const auto found = open_.find(connection);
  ended = std::move(found->second);
  open_.erase(found);
  const auto count = of_peer_.find(peer);
  if (--count->second == 0) of_peer_.erase(count);
}

}  // namespace muster
