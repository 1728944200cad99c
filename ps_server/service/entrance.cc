#include "ps_server/service/entrance.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/rpc/error_reason.h"
#include "common/tls/certificate.h"
#include "common/tls/identity.h"
#include "grpcpp/security/auth_context.h"

namespace muster {
namespace {

// gRPC's name for the certificate of a peer.
constexpr char kCertificate[] = "x509_pem_cert";
// A property of every peer but those in this process, whom gRPC gives none.
constexpr char kSecurity[] = "transport_security_type";

// More than there are tasks; then it begins anew.
constexpr size_t kMostRead = 8192;

}  // namespace

Entrance::Entrance(Options options)
    : options_(std::move(options)),
      known_(options_.cluster),
      lines_(options_.reporter, options_.clock) {}

Caller Entrance::Identify(const grpc::CallbackServerContext& context) const {
  if (!options_.proves_callers) return Caller();
  const std::vector<grpc::string_ref> shown =
      context.auth_context()->FindPropertyValues(kCertificate);
  if (shown.size() == 1) {
    return ReadCaller({shown.front().data(), shown.front().size()});
  }
  Caller caller;
  const bool is_self =
      context.auth_context()->FindPropertyValues(kSecurity).empty();
  caller.role = is_self ? Role::kPs : Role::kStranger;
  if (is_self) caller.task = options_.self;
  return caller;
}

Caller Entrance::IdentifyHolder(absl::string_view pem) const {
  return options_.proves_callers ? ReadCaller(pem) : Caller();
}

Caller Entrance::ReadCaller(absl::string_view pem) const {
  {
    absl::MutexLock lock(&mu_);
    const auto found = read_.find(pem);
    if (found != read_.end()) return found->second;
  }
  Caller caller;
  caller.role = Role::kStranger;
  const absl::StatusOr<Certificate> certificate =
      ReadCertificate(pem, "the caller");
  if (!certificate.ok()) return caller;
  const absl::StatusOr<Identity> identity = IdentityOf(*certificate);
  if (!identity.ok()) return caller;
  caller = known_.CallerOf(*identity);
  caller.valid_until =
      options_.clock->Now() + (certificate->not_after - options_.wall_time());
  absl::MutexLock lock(&mu_);
  if (read_.size() >= kMostRead) read_.clear();
  read_.emplace(pem, caller);
  return caller;
}

absl::Status Entrance::Check(const AnyMethod& method,
                             const Caller& caller) const {
  if (caller.role == Role::kUnproven) return Say(CheckMayCall(method, caller));
  if (options_.clock->Now() >= caller.valid_until) {
    return Say(WithReason(
        absl::UnavailableError(absl::StrCat(
            method.path, ": the certificate of ",
            caller.task.has_value() ? TaskName(*caller.task) : "the caller",
            " has ended since it connected; it connects anew with a renewed "
            "one")),
        ErrorReason::kCertificateEnded));
  }
  return Say(CheckMayCall(method, caller));
}

absl::Status Entrance::CheckProfile(const ProfileRequest& request,
                                    const Caller& caller) const {
  return Say(CheckMayProfile(request, caller));
}

absl::Status Entrance::CheckSenderIs(const AnyMethod& method,
                                     const Sender& sender,
                                     const Caller& caller) const {
  return Say(CheckSender(method, sender, caller));
}

absl::Status Entrance::Say(absl::Status status) const {
  if (!status.ok()) {
    lines_.Say(absl::StrCat("refused: ", EscapeForLog(status.message())));
  }
  return status;
}

const Entrance* OpenEntrance() {
  static const auto& open = *new Entrance(Entrance::Options());
  return &open;
}

}  // namespace muster
