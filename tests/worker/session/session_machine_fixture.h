#ifndef TESTS_WORKER_SESSION_SESSION_MACHINE_FIXTURE_H_
#define TESTS_WORKER_SESSION_SESSION_MACHINE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/protocol.h"
#include "worker/session/session_machine.h"

namespace muster {

// Drives a machine with a clock of its own; keeps the actions of the last
// event, or of all events since Clear.
class SessionMachineTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kFingerprint = 99;

  void Start(bool chief, int ps_tasks = 1) {
    SessionMachine::Options options;
    options.self.set_job("worker");
    options.self.set_index(chief ? 0 : 1);
    options.chief = chief;
    options.chief_task.set_job("worker");
    options.takes_any_worker = takes_any_worker_;
    options.listed_workers = listed_workers_;
    options.model_fingerprint = kFingerprint;
    options.max_wait = absl::Seconds(60);
    options.step_wait = step_wait_;
    options.goal = goal_;
    options.asks_before_takeover = asks_before_takeover_;
    options.saves = saves_;
    options.saved_step = saved_step_;
    options.finished = finished_;
    for (int i = 0; i < ps_tasks; ++i) {
      options.ps_addresses.push_back(absl::StrCat("host", i, ":2222"));
    }
    machine_ = std::make_unique<SessionMachine>(options);
  }

  void Send(SessionEvent event) {
    actions_.clear();
    for (auto& action : machine_->Handle(event, now_)) {
      actions_.push_back(std::move(action));
    }
  }
  void Pass(absl::Duration duration) {
    now_ += duration;
    Send(TickEvent{});
  }

  // The action of this type in the last answer; null if there is none.
  template <typename T>
  const T* Get() const {
    for (const SessionAction& action : actions_) {
      if (const T* found = std::get_if<T>(&action)) return found;
    }
    return nullptr;
  }

  // The first line with `part`; "" if there is none.
  std::string Said(absl::string_view part) const {
    for (const SessionAction& action : actions_) {
      const Say* const say = std::get_if<Say>(&action);
      if (say != nullptr && absl::StrContains(say->text, part)) {
        return say->text;
      }
    }
    return "";
  }

  static HelloReply Shard(uint64_t incarnation, int64_t epoch = 0) {
    HelloReply reply;
    reply.set_protocol_version(kProtocolVersion);
    reply.set_ps_incarnation(incarnation);
    reply.mutable_state()->set_model_epoch(epoch);
    return reply;
  }

  JobState State(JobPhase phase, int64_t epoch = 0,
                 std::vector<uint64_t> incarnations = {}) {
    JobState state;
    state.set_state_version(++version_);
    state.set_phase(phase);
    state.set_model_epoch(epoch);
    state.set_fingerprint(kFingerprint);
    for (size_t i = 0; i < incarnations.size(); ++i) {
      (*state.mutable_ps_incarnations())[i] = incarnations[i];
    }
    return state;
  }

  RegisterReply Registered(const JobState& state) {
    RegisterReply reply;
    *reply.mutable_state() = state;
    return reply;
  }

  static FinishReply Finished(const JobState& state) {
    FinishReply reply;
    *reply.mutable_state() = state;
    return reply;
  }

  StepReply Reply(bool granted, int64_t epoch, JobPhase phase = RUNNING) {
    StepReply reply;
    reply.set_granted(granted);
    reply.set_phase(phase);
    reply.set_model_epoch(epoch);
    reply.set_state_version(version_);
    if (granted) reply.add_leases()->add_ranges()->set_rows(32);
    return reply;
  }

  // To the first granted step of a worker in epoch 1.
  void RunToFirstStep(bool chief) {
    Start(chief);
    Send(TickEvent{});
    Send(HelloEvent{0, Shard(7, 1)});
    Send(RegisterEvent{Registered(State(RUNNING, 1, {7}))});
    ASSERT_NE(Get<SendStep>(), nullptr);
    Send(StepEvent{Reply(true, 1)});
    ASSERT_NE(Get<TrainStep>(), nullptr);
  }

  // To the final save of the chief, who is alone.
  void RunToFinal() {
    RunToFirstStep(/*chief=*/true);
    Send(TrainEvent{StepReport()});
    Send(WatchEvent{State(STOPPING, 1, {7})});
    Send(StepEvent{Reply(false, 1, STOPPING)});
    ASSERT_NE(Get<RunFinal>(), nullptr);
    EXPECT_TRUE(Get<RunFinal>()->completed);
  }

  // RUNNING, and worker 1 has made so many steps of the epoch.
  JobState StateWithSelf(int64_t epoch, uint64_t incarnation, int64_t steps) {
    JobState state = State(RUNNING, epoch, {incarnation});
    WorkerState* self = state.add_workers();
    self->mutable_sender()->mutable_task()->set_job("worker");
    self->mutable_sender()->mutable_task()->set_index(1);
    self->set_steps(steps);
    return state;
  }

  // A state with a live worker 1.
  JobState StateWithAnother(JobPhase phase) {
    JobState state = State(phase, 1, {7});
    Sender* other = state.add_workers()->mutable_sender();
    other->set_incarnation(5);
    other->mutable_task()->set_job("worker");
    other->mutable_task()->set_index(1);
    return state;
  }

  // From the first step to the wait for worker 1.
  void DrainBesideAnother() {
    Send(WatchEvent{StateWithAnother(RUNNING)});
    Send(SignalEvent{15});
    Send(TrainEvent{StepReport()});
    Send(StepEvent{Reply(false, 1, STOPPING)});
  }

  std::unique_ptr<SessionMachine> machine_;
  std::vector<SessionAction> actions_;
  absl::Time now_ = absl::UnixEpoch();
  int64_t version_ = 0;
  // The options of the machine that Start makes.
  absl::Duration step_wait_;
  JobGoal goal_;
  bool asks_before_takeover_ = false;
  bool takes_any_worker_ = false;
  int listed_workers_ = 0;
  bool saves_ = false;
  int64_t saved_step_ = -1;
  std::string finished_;
};

}  // namespace muster

#endif  // TESTS_WORKER_SESSION_SESSION_MACHINE_FIXTURE_H_
