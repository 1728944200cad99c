#ifndef COMMON_TLS_TASK_KEYS_H_
#define COMMON_TLS_TASK_KEYS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file_descriptor.h"
#include "common/base/reporter.h"
#include "common/cluster/task_id.h"
#include "common/rpc/byte_channel.h"
#include "common/rpc/credentials.h"
#include "common/tls/certificate_feed.h"
#include "common/tls/certs_folder.h"
#include "common/tls/peer_trust.h"
#include "common/tls/tls_channel.h"
#include "grpcpp/security/credentials.h"

namespace muster {

// The keys of a task, from a folder that `muster certs` has made, while the
// task lives: who it proves to be, and whom it believes. Looks at the folder
// each second, on a thread, and takes what changed: new connections have the
// new certificate and trust the new authority, the others stay. What a peer
// would refuse, half a pair for example, is not taken, and said.
//
//   ASSIGN_OR_RETURN(auto keys, TaskKeys::Create({"certs", "worker", 1, ...}));
//   OpenChannel(address, keys->credentials().ChannelTo(kPsJob, 0));
//
// Thread-safe. Outlives the servers and channels that have its credentials.
class TaskKeys {
 public:
  struct Options {
    std::string dir;
    // The own task; index -1 for job viewer or admin.
    std::string job;
    int32_t index = -1;
    // Gets lines about the own certificate and about peers that are refused.
    Reporter reporter;
    // Outlives the keys.
    const Clock* clock = nullptr;
    absl::Duration look_every = absl::Seconds(1);
    // Now, as certificates have it.
    std::function<absl::Time()> wall_time = absl::Now;
  };

  // Errors: those of ReadCerts, CertificateFeed and MakeTlsContext.
  static absl::StatusOr<std::unique_ptr<TaskKeys>> Create(Options options);
  ~TaskKeys();

  TaskKeys(const TaskKeys&) = delete;
  TaskKeys& operator=(const TaskKeys&) = delete;

  const TaskCredentials& credentials() const { return credentials_; }
  const Identity& identity() const { return identity_; }

 private:
  TaskKeys(Options options, Certs certs, std::unique_ptr<CertificateFeed> feed,
           TlsContext context);

  void MakeCredentials();
  std::shared_ptr<grpc::ChannelCredentials> ChannelTo(const std::string& job,
                                                      int32_t index) const;
  absl::StatusOr<std::unique_ptr<ByteChannel>> MakeChannel(
      FileDescriptor socket, TlsSide peer, std::optional<Identity> wanted);
  void Run();
  // Reads the folder once.
  void Look();
  void Take(Certs certs);
  // Once for each error in a row.
  void SayBad(const absl::Status& status);

  // Constant after construction.
  const Options options_;
  const Identity identity_;
  TaskCredentials credentials_;

  // Own synchronisation.
  const std::shared_ptr<PeerTrust> trust_;

  // Used by the thread only.
  const std::unique_ptr<CertificateFeed> feed_;
  Certs certs_;
  std::string bad_;

  absl::Mutex mu_;
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  TlsContext context_ ABSL_GUARDED_BY(mu_);

  // Last: uses all of the above.
  std::unique_ptr<ClockThread> thread_;
};

// The keys of a task of a cluster, from the folder of --certs_dir; null if
// `dir` is "". Errors: those of TaskKeys::Create.
absl::StatusOr<std::unique_ptr<TaskKeys>> KeysOfTask(const std::string& dir,
                                                     const TaskId& task,
                                                     Reporter reporter,
                                                     const Clock* clock);

// Those of `keys`; of null, InsecureCredentials().
TaskCredentials CredentialsOf(const TaskKeys* keys);

}  // namespace muster

#endif  // COMMON_TLS_TASK_KEYS_H_
