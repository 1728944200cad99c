#include "worker/session/chief_machine.h"

#include <algorithm>

namespace muster {

bool ShardsHoldEpoch(const JobState& state,
                     absl::Span<const HelloReply> hellos) {
  for (size_t i = 0; i < hellos.size(); ++i) {
    const auto it = state.ps_incarnations().find(static_cast<int>(i));
    if (it == state.ps_incarnations().end()) return false;
    if (it->second != hellos[i].ps_incarnation()) return false;
    if (hellos[i].state().model_epoch() > state.model_epoch()) return false;
  }
  return true;
}

bool EpochIsUsable(const JobState& state, absl::Span<const HelloReply> hellos) {
  return (state.phase() == RUNNING || state.phase() == STOPPING) &&
         ShardsHoldEpoch(state, hellos);
}

bool CanResume(const JobState& state, absl::Span<const HelloReply> hellos) {
  return state.phase() == INITIAL && state.model_epoch() != 0 &&
         ShardsHoldEpoch(state, hellos) &&
         std::all_of(
             hellos.begin(), hellos.end(), [&state](const HelloReply& hello) {
               return hello.state().phase() == READY &&
                      hello.state().model_epoch() == state.model_epoch();
             });
}

int64_t LargestSeenEpoch(const JobState& state,
                         absl::Span<const HelloReply> hellos) {
  int64_t epoch = state.model_epoch();
  for (const HelloReply& hello : hellos) {
    epoch = std::max(epoch, hello.state().model_epoch());
  }
  return epoch;
}

std::vector<uint64_t> IncarnationsOf(absl::Span<const HelloReply> hellos) {
  std::vector<uint64_t> incarnations;
  for (const HelloReply& hello : hellos) {
    incarnations.push_back(hello.ps_incarnation());
  }
  return incarnations;
}

SessionAction ChiefMachine::Start(const JobState& state,
                                  absl::Span<const HelloReply> hellos,
                                  int64_t last_epoch) {
  phase_ = Phase::kBeginning;
  ps_incarnations_ = IncarnationsOf(hellos);
  // All of them may have been started anew since.
  return SendBeginEpoch{
      std::max({LargestSeenEpoch(state, hellos), last_epoch, model_epoch_})};
}

SessionAction ChiefMachine::Resume(const JobState& state,
                                   absl::Span<const HelloReply> hellos) {
  phase_ = Phase::kCommitting;
  model_epoch_ = state.model_epoch();
  ps_incarnations_ = IncarnationsOf(hellos);
  return SendCommit{model_epoch_, LoadedModel(), ps_incarnations_,
                    /*resumes=*/true};
}

SessionAction ChiefMachine::OnBegun(const BeginEpochReply& reply) {
  phase_ = Phase::kLoading;
  model_epoch_ = reply.model_epoch();
  return LoadModel{model_epoch_, ps_incarnations_};
}

SessionAction ChiefMachine::OnLoaded(const LoadedModel& model) {
  phase_ = Phase::kCommitting;
  return SendCommit{model_epoch_, model, ps_incarnations_};
}

}  // namespace muster
