#ifndef PS_SERVER_SERVICE_SAVE_ASKER_H_
#define PS_SERVER_SERVICE_SAVE_ASKER_H_

#include <memory>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "grpcpp/channel.h"
#include "proto/coordination_service.grpc.pb.h"
#include "ps_server/service/save_wait.h"

namespace muster {

// Has the chief save before this ps stops: carries out what SaveWait decides.
// One thread.
class SaveAsker {
 public:
  // `ps_0` leads to ps task 0; `self` is this ps. `clock` outlives the asker.
  SaveAsker(const std::shared_ptr<grpc::Channel>& ps_0, const Sender& self,
            const Clock* clock);

  // Asks, and waits at most so long. Says how it ended.
  SaveWait::Verdict AwaitSave(absl::Duration patience);

  // Tells that this ps acknowledges nothing any more, so that the others need
  // not pause longer. A failure is harmless: the pause has a limit.
  void Leave(absl::Duration patience);

 private:
  SaveWait::Verdict Ask(SaveWait* wait);
  SaveWait::Verdict WatchOnce(SaveWait* wait);

  const std::unique_ptr<CoordinationService::Stub> stub_;
  const Sender self_;
  const Clock* const clock_;
  int64_t state_version_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SAVE_ASKER_H_
