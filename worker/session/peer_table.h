#ifndef WORKER_SESSION_PEER_TABLE_H_
#define WORKER_SESSION_PEER_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// The ps tasks: which have answered Hello, why the others have not, and when
// each is to be tried again (50 ms, doubled up to 500: with the pauses of the
// connection, channel_settings.h, a ps that comes up is seen within a second).
// Not thread-safe; no clock, no waiting.
class PeerTable {
 public:
  // "host:port" by ps task; "" in this process.
  explicit PeerTable(std::vector<std::string> addresses);

  int size() const { return static_cast<int>(peers_.size()); }

  // Tasks to greet now; each is then in flight until OnReply.
  std::vector<int> TakeDue(absl::Time now);

  // The takeover that the next Hello to this task confirms; 0: none.
  uint64_t takeover(int ps_task) const { return peers_[ps_task].takeover; }

  // Does a ps know another start of this task?
  bool WantsTakeover() const;

  // Keeps the reply, or the cause of a failure and the time of the next try: at
  // once if the ps wants to hear a takeover confirmed.
  void OnReply(int ps_task, const absl::StatusOr<HelloReply>& reply,
               absl::Time now);

  // Greet again: all, or one task that is not in flight.
  void ResetAll();
  void Reset(int ps_task, absl::Time not_before);

  bool IsGreeted(int ps_task) const { return peers_[ps_task].greeted; }
  // Any but this one, which may be none's number.
  bool IsAnyGreetedBut(int ps_task) const;
  bool AllGreeted() const;
  // By task. REQUIRES: AllGreeted().
  const std::vector<HelloReply>& replies() const { return replies_; }
  // Sets the epoch that all shards have after the chief's own load.
  void SetModelEpoch(int64_t model_epoch);

  // "/job:ps/task:1 at localhost:2223 (connection refused), ...".
  std::string DescribeMissing() const;

  // When TakeDue next has something to give; InfiniteFuture if nothing.
  absl::Time next_due() const;

 private:
  struct Peer {
    std::string address;
    bool greeted = false;
    bool in_flight = false;
    int failures = 0;
    uint64_t takeover = 0;
    absl::Time not_before = absl::InfinitePast();
    std::string cause = "no answer yet";
  };

  std::vector<Peer> peers_;
  std::vector<HelloReply> replies_;
};

// "/job:ps/task:1 at localhost:2223".
std::string PsName(int ps_task, const std::string& address);

// `text` without "PS: " before a cause: what follows a peer's name does not say
// it again.
std::string WithoutPsName(absl::string_view text, const std::string& ps);

// The pause before try number `failures` + 1.
absl::Duration RetryPause(int failures);
// The same before a Hello.
absl::Duration HelloPause(int failures);

}  // namespace muster

#endif  // WORKER_SESSION_PEER_TABLE_H_
