#ifndef PS_SERVER_SERVICE_SAVE_ASKER_H_
#define PS_SERVER_SERVICE_SAVE_ASKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
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
  // `ps_0` leads to ps task 0; `self` is this ps, in the namespace whose chief
  // is to save. `clock` outlives the asker.
  SaveAsker(const std::shared_ptr<grpc::Channel>& ps_0, const Sender& self,
            const Clock* clock);

  // Asks; the answer is waited for at most so long.
  void Begin(absl::Duration patience);
  // Waits for the verdict; longer while `is_saving`: on a slow disk a save that
  // has begun takes its time. REQUIRES: Begin.
  void Await(absl::FunctionRef<bool()> is_saving);
  // Looks whether a save still holds what its job has counted: others were
  // waited for meanwhile, in which the model may have been loaded anew.
  void Confirm();
  // Says how it ended.
  SaveWait::Verdict Say() const;

  // Tells that this ps acknowledges nothing any more, so that the others need
  // not pause longer. A failure is harmless: the pause has a limit.
  void Leave(absl::Duration patience);

 private:
  // A line's beginning: "namespace 'a': ".
  std::string WhoseJob() const;
  SaveWait::Verdict Ask(SaveWait* wait);
  // Hears of the state when it has changed, or after `longest`.
  absl::StatusOr<JobState> WatchOnce(absl::Duration longest);

  const std::unique_ptr<CoordinationService::Stub> stub_;
  const Sender self_;
  const Clock* const clock_;
  int64_t state_version_ = 0;
  absl::Time start_;
  std::optional<SaveWait> wait_;
  SaveWait::Verdict verdict_ = SaveWait::Verdict::kWait;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_SAVE_ASKER_H_
