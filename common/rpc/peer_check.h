#ifndef COMMON_RPC_PEER_CHECK_H_
#define COMMON_RPC_PEER_CHECK_H_

#include <atomic>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "grpcpp/support/status.h"

namespace muster {

// The answer of a task that speaks TLS alone to a client that does not begins
// so (server/fresh_connections).
inline constexpr absl::string_view kTlsAloneLine =
    "HTTP/1.1 400 This task of Muster speaks TLS alone";

// Whether what listens at a peer's address is a ps task at all, found out when
// calls to it fail: of any other program gRPC's words would blame certificates.
// Thread-safe.
class PeerCheck {
 public:
  // The longest wait for an answer, and the shortest between two questions.
  static constexpr absl::Duration kPatience = absl::Milliseconds(500);
  static constexpr absl::Duration kBetween = absl::Seconds(10);

  // `address` is "host:port"; `clock` outlives this.
  PeerCheck(std::string address, const Clock* clock);

  // Of a failed call: "What listens at localhost:22 is no ps task of Muster (it
  // answered 'SSH-2.0-OpenSSH_9.2')", fit for a log line; "" if it may be one.
  // Where gRPC has reached the port, and got nowhere, asks what is there, which
  // may take kPatience.
  std::string Explain(const grpc::Status& status);

  // It has answered as a ps task: one that is late later is one still.
  void OnAnswer() { has_answered_ = true; }

 private:
  bool IsReached(const grpc::Status& status) const;

  const std::string address_;
  const Clock* const clock_;
  std::atomic<bool> has_answered_ = false;

  absl::Mutex mu_;
  // The newest answer, and when it was asked for.
  std::string found_ ABSL_GUARDED_BY(mu_);
  absl::Time asked_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

// The outcome of a question that every kind of server answers in its own way.
struct PortAnswer {
  // At most its beginning.
  std::string bytes;
  bool is_connected = false;
  // It closed the connection, instead of saying nothing.
  bool is_closed = false;
};

// What is wrong with it, as PeerCheck says it; "" for what may be a ps task's.
std::string DescribeAnswer(absl::string_view address, const PortAnswer& answer);

}  // namespace muster

#endif  // COMMON_RPC_PEER_CHECK_H_
