#ifndef PS_SERVER_SERVICE_ENTRANCE_H_
#define PS_SERVER_SERVICE_ENTRANCE_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/rpc/method.h"
#include "common/tls/refusal_lines.h"
#include "grpcpp/server_context.h"
#include "ps_server/caller/caller.h"
#include "ps_server/caller/known_callers.h"

namespace muster {

// Who may come in: asked once for each call, whatever way it comes, before
// anything of it is carried out. Says a line for each refusal. Thread-safe.
class Entrance {
 public:
  struct Options {
    // Whether connections have certificates; if not, everybody is let in, and
    // taken for whom he says to be.
    bool proves_callers = false;
    ClusterDef cluster;
    // The ps itself, which calls within its process.
    TaskKey self;
    // Now, as certificates have it.
    std::function<absl::Time()> wall_time;
    Reporter reporter;
    // Outlives this.
    const Clock* clock = SystemClock();
  };

  explicit Entrance(Options options);
  virtual ~Entrance() = default;

  Entrance(const Entrance&) = delete;
  Entrance& operator=(const Entrance&) = delete;

  // The peer of a gRPC connection.
  virtual Caller Identify(const grpc::CallbackServerContext& context) const;
  // The holder of a certificate in PEM form, which the handshake of another
  // connection has checked; where there are none, Identify's for everybody.
  virtual Caller IdentifyHolder(absl::string_view pem) const;

  // Whether the caller may make the call, now. Errors: CheckMayCall's;
  // Unavailable if its certificate has ended meanwhile: it may come again with
  // the new one.
  absl::Status Check(const AnyMethod& method, const Caller& caller) const;
  // What a Profile call may ask for. Errors: CheckMayProfile's.
  absl::Status CheckProfile(const ProfileRequest& request,
                            const Caller& caller) const;
  // Whether a request's sender is the caller. Errors: CheckSender's.
  absl::Status CheckSenderIs(const AnyMethod& method, const Sender& sender,
                             const Caller& caller) const;

 private:
  // The holder of a certificate in PEM form, which the handshake has checked.
  Caller ReadCaller(absl::string_view pem) const;
  absl::Status Say(absl::Status status) const;

  // Constant after construction.
  const Options options_;
  const KnownCallers known_;

  // Own synchronisation.
  mutable RefusalLines lines_;

  mutable absl::Mutex mu_;
  // By certificate: reading one takes as long as a small call.
  mutable absl::flat_hash_map<std::string, Caller> read_ ABSL_GUARDED_BY(mu_);
};

// Lets everybody in. Never destroyed.
const Entrance* OpenEntrance();

// One call at an entrance: looks at the sender when the request has been read.
// Refers to what it is made of.
struct CallCheck {
  const Entrance* entrance = OpenEntrance();
  // Null: nobody to compare with.
  const AnyMethod* method = nullptr;
  const Caller* caller = nullptr;

  absl::Status SenderIs(const Sender& sender) const {
    if (method == nullptr || caller == nullptr) return absl::OkStatus();
    return entrance->CheckSenderIs(*method, sender, *caller);
  }
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_ENTRANCE_H_
