#include "common/tls/task_keys.h"

#include <stdlib.h>

#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "grpc/grpc_security_constants.h"
#include "grpc/support/log.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "openssl/bio.h"
#include "openssl/conf.h"
#include "openssl/ssl.h"

namespace muster {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsChannelCredentialsOptions;
using grpc::experimental::TlsCredentialsOptions;
using grpc::experimental::TlsCustomVerificationCheckRequest;
using grpc::experimental::TlsServerCredentialsOptions;

constexpr char kConfiguration[] =
    "openssl_conf = muster\n"
    "[muster]\n"
    "ssl_conf = contexts\n"
    "[contexts]\n"
    "system_default = every_context\n"
    "[every_context]\n"
    // Half a core's time for a GB/s less than with AES-256, and as far out of
    // reach.
    "Ciphersuites = TLS_AES_128_GCM_SHA256\n"
    "MinProtocol = TLSv1.3\n";

// gRPC reads it when it makes its first credentials, and asks OpenSSL for at
// least TLS 1.2 afterwards.
constexpr char kGrpcCiphers[] = "GRPC_SSL_CIPHER_SUITES";
constexpr char kNoCipherOfTls12[] = "PSK-AES128-GCM-SHA256";

bool ConfigureTls() {
  setenv(kGrpcCiphers, kNoCipherOfTls12, /*overwrite=*/1);
  gpr_set_log_function([](gpr_log_func_args*) {});
  // Its own configuration first, or it would come later, on top.
  OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, nullptr);
  const std::unique_ptr<BIO, int (*)(BIO*)> text(
      BIO_new_mem_buf(kConfiguration, -1), &BIO_free);
  const std::unique_ptr<CONF, void (*)(CONF*)> conf(NCONF_new(nullptr),
                                                    &NCONF_free);
  return NCONF_load_bio(conf.get(), text.get(), nullptr) > 0 &&
         CONF_modules_load(conf.get(), nullptr, 0) > 0;
}

// Has this process speak TLS 1.3 and nothing older, with AES-128-GCM. gRPC 1.51
// offers no setting for either: OpenSSL's own configuration names the cipher,
// and of TLS 1.2 gRPC is left a cipher that wants a shared secret, which nobody
// has. What gRPC prints of handshakes goes: PeerTrust says it in better words.
// Repeatable. REQUIRES: gRPC has made no TLS credentials before.
void SetUpTls() {
  // Once in the life of the process.
  [[maybe_unused]] static const bool kConfigured = ConfigureTls();
}

absl::string_view ViewOf(grpc::string_ref text) {
  return {text.data(), text.size()};
}

// Has gRPC ask a PeerTrust after each handshake, before the first byte of a
// call: gRPC's own check would name neither the peer nor the reason.
class PeerVerifier : public ExternalCertificateVerifier {
 public:
  // `side`: the peer's.
  PeerVerifier(std::shared_ptr<const PeerTrust> trust, TlsSide side,
               std::optional<Identity> wanted)
      : trust_(std::move(trust)), side_(side), wanted_(std::move(wanted)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* sync_status) override {
    const absl::Status status =
        trust_->Check({ViewOf(request->peer_cert()),
                       ViewOf(request->peer_cert_full_chain()), side_},
                      wanted_);
    *sync_status = status.ok() ? grpc::Status::OK
                               : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                              std::string(status.message()));
    return true;
  }
  // Nothing is ever under way.
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<const PeerTrust> trust_;
  const TlsSide side_;
  const std::optional<Identity> wanted_;
};

void Watch(TlsCredentialsOptions* options) {
  options->watch_root_certs();
  options->watch_identity_key_cert_pairs();
}

std::string EndOf(const Certs& certs) {
  return absl::StrCat(
      "until ", absl::FormatTime(absl::RFC3339_sec, certs.certificate.not_after,
                                 absl::UTCTimeZone()));
}

// A Secret of Kubernetes is everybody's by default, so that it is no error.
void WarnOfExposedKey(const Certs& certs, const Reporter& reporter) {
  if (certs.exposed_key.empty()) return;
  reporter.Warning(absl::StrCat(
      "TLS: everybody on this machine may read ", certs.exposed_key,
      ", and pass for this task: chmod 600 it (defaultMode: 0440 in a Secret "
      "of Kubernetes), and renew it if somebody may have"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskKeys>> TaskKeys::Create(Options options) {
  SetUpTls();
  absl::StatusOr<Certs> certs =
      ReadCerts(options.dir, options.job, options.index, options.wall_time());
  RETURN_IF_ERROR(
      Annotate(certs.status(), absl::StrCat("--certs_dir=", options.dir)));
  ASSIGN_OR_RETURN(
      std::unique_ptr<CertificateFeed> feed,
      CertificateFeed::Create(certs->authority, certs->chain, certs->key));
  ASSIGN_OR_RETURN(TlsContext context,
                   MakeTlsContext(certs->chain, certs->key));
  return absl::WrapUnique(new TaskKeys(std::move(options), *std::move(certs),
                                       std::move(feed), std::move(context)));
}

TaskKeys::TaskKeys(Options options, Certs certs,
                   std::unique_ptr<CertificateFeed> feed, TlsContext context)
    : options_(std::move(options)),
      identity_(certs.identity),
      trust_(std::make_shared<PeerTrust>(identity_, certs.authority,
                                         options_.wall_time, options_.reporter,
                                         options_.clock)),
      feed_(std::move(feed)),
      certs_(std::move(certs)),
      context_(std::move(context)) {
  MakeCredentials();
  options_.reporter.Info(
      absl::StrCat("TLS: ", NameOf(identity_), ", certificate ",
                   NameOf(certs_.certificate), " ", EndOf(certs_)));
  WarnOfExposedKey(certs_, options_.reporter);
  thread_ = options_.clock->StartThread([this] { Run(); });
}

TaskKeys::~TaskKeys() {
  {
    absl::MutexLock lock(&mu_);
    quit_ = true;
  }
  thread_.reset();
}

void TaskKeys::MakeCredentials() {
  TlsServerCredentialsOptions server(feed_->provider());
  Watch(&server);
  // The verifier checks what gRPC does not.
  server.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  server.set_certificate_verifier(
      ExternalCertificateVerifier::Create<PeerVerifier>(
          trust_, TlsSide::kClient, std::nullopt));
  credentials_.server = grpc::experimental::TlsServerCredentials(server);
  credentials_.channel_to = [this](const std::string& job, int32_t index) {
    return ChannelTo(job, index);
  };
  credentials_.dial_over = [this](FileDescriptor socket, const std::string& job,
                                  int32_t index) {
    return MakeChannel(std::move(socket), TlsSide::kServer,
                       Identity{identity_.cluster, job, index});
  };
  credentials_.accept_over = [this](FileDescriptor socket) {
    return MakeChannel(std::move(socket), TlsSide::kClient, std::nullopt);
  };
  credentials_.proves_callers = true;
  credentials_.wall_time = options_.wall_time;
}

std::shared_ptr<grpc::ChannelCredentials> TaskKeys::ChannelTo(
    const std::string& job, int32_t index) const {
  TlsChannelCredentialsOptions channel;
  channel.set_certificate_provider(feed_->provider());
  Watch(&channel);
  channel.set_verify_server_certs(false);
  // A task is known by its name in the certificate, wherever it runs.
  channel.set_check_call_host(false);
  channel.set_certificate_verifier(
      ExternalCertificateVerifier::Create<PeerVerifier>(
          trust_, TlsSide::kServer, Identity{identity_.cluster, job, index}));
  return grpc::experimental::TlsCredentials(channel);
}

absl::StatusOr<std::unique_ptr<ByteChannel>> TaskKeys::MakeChannel(
    FileDescriptor socket, TlsSide peer, std::optional<Identity> wanted) {
  TlsContext context;
  {
    absl::MutexLock lock(&mu_);
    context = context_;
  }
  TlsChannel::Options options;
  options.peer = peer;
  options.trust = trust_;
  options.wanted = std::move(wanted);
  return TlsChannel::Create(std::move(socket), context, std::move(options));
}

void TaskKeys::Run() {
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      if (options_.clock->Await(&mu_, absl::Condition(&quit_),
                                options_.look_every)) {
        return;
      }
    }
    Look();
  }
}

void TaskKeys::Look() {
  absl::StatusOr<Certs> certs = ReadCerts(options_.dir, options_.job,
                                          options_.index, options_.wall_time());
  if (!certs.ok()) return SayBad(certs.status());
  if (!std::exchange(bad_, "").empty()) {
    options_.reporter.Info(
        absl::StrCat("TLS: --certs_dir=", options_.dir, " is whole again"));
  }
  if (certs->chain != certs_.chain || certs->key != certs_.key ||
      certs->authority != certs_.authority) {
    Take(*std::move(certs));
  }
}

void TaskKeys::Take(Certs certs) {
  if (certs.identity.cluster != identity_.cluster) {
    return SayBad(absl::UnauthenticatedError(
        absl::StrCat("the certificate is of ", NameOf(certs.identity),
                     "; this is cluster '", identity_.cluster, "'")));
  }
  absl::StatusOr<TlsContext> context = MakeTlsContext(certs.chain, certs.key);
  if (!context.ok()) return SayBad(context.status());
  const absl::Status published =
      feed_->Publish(certs.authority, certs.chain, certs.key);
  if (!published.ok()) return SayBad(published);
  trust_->SetAuthority(certs.authority);
  {
    absl::MutexLock lock(&mu_);
    context_ = *std::move(context);
  }
  options_.reporter.Info(
      absl::StrCat("TLS: new certificates: ", NameOf(certs_.certificate),
                   " goes, ", NameOf(certs.certificate), " comes, ",
                   EndOf(certs), "; connections stay"));
  WarnOfExposedKey(certs, options_.reporter);
  certs_ = std::move(certs);
}

void TaskKeys::SayBad(const absl::Status& status) {
  if (bad_ == status.message()) return;
  bad_ = std::string(status.message());
  options_.reporter.Warning(absl::StrCat(
      "TLS: --certs_dir=", options_.dir, " is not taken: ", bad_, "; ",
      NameOf(certs_.certificate), " stays, ", EndOf(certs_)));
}

absl::StatusOr<std::unique_ptr<TaskKeys>> KeysOfTask(const std::string& dir,
                                                     const TaskId& task,
                                                     Reporter reporter,
                                                     const Clock* clock) {
  if (dir.empty()) return nullptr;
  TaskKeys::Options options;
  options.dir = dir;
  options.job = task.job();
  options.index = task.index();
  options.reporter = std::move(reporter);
  options.clock = clock;
  return TaskKeys::Create(std::move(options));
}

TaskCredentials CredentialsOf(const TaskKeys* keys) {
  return keys == nullptr ? InsecureCredentials() : keys->credentials();
}

}  // namespace muster
