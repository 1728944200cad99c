// The state of a Coordinator, as each caller is told it.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "ps_server/coordinator/coordinator.h"

namespace muster {

bool Coordinator::WatchesAll(const TaskKey& asker) const {
  const CoordinatorWorker* const worker = job_.members().Find(asker);
  return !IsTrainingJob(asker.first) ||
         (worker != nullptr && worker->may_be_chief);
}

void Coordinator::AddTo(JobState& state,
                        const CoordinatorWorker& worker) const {
  WorkerState& added = *state.add_workers();
  added = worker.State();
  added.set_leased_rows(job_.leases().NumRowsOf(KeyOf(worker.sender)));
}

JobState Coordinator::State() const {
  JobState state = StateOfJob();
  for (const auto& [key, worker] : job_.members()) AddTo(state, worker);
  return state;
}

JobState Coordinator::StateForOperator(absl::Time now) const {
  JobState state = State();
  const absl::Time last_word = job_.members().LastWord();
  state.set_idle_s(last_word == absl::InfinitePast()
                       ? -1
                       : absl::ToDoubleSeconds(now - last_word));
  saves_.AddSavedTo(state, now);
  const std::map<TaskKey, std::string> waits = steps_.DescribeWaits();
  for (WorkerState& worker : *state.mutable_workers()) {
    const TaskKey key = KeyOf(worker.sender());
    const auto wait = waits.find(key);
    if (wait != waits.end()) worker.set_waits_for(wait->second);
    const absl::Time heard = job_.members().Find(key)->last_heard;
    if (heard != absl::InfinitePast()) {
      worker.set_silent_s(absl::ToDoubleSeconds(now - heard));
    }
  }
  return state;
}

std::vector<CoordinatorWorker::Totals> Coordinator::TotalsOfWorkers() const {
  std::vector<CoordinatorWorker::Totals> totals;
  totals.reserve(job_.members().size());
  for (const auto& [key, worker] : job_.members()) {
    totals.push_back(worker.totals);
  }
  return totals;
}

absl::StatusOr<SteerReply> Coordinator::Steer(const SteerRequest& request,
                                              absl::Time now) {
  ASSIGN_OR_RETURN(SteerReply reply, steering_.Steer(request));
  *reply.mutable_state() = StateForOperator(now);
  return reply;
}

absl::StatusOr<BeginProfileReply> Coordinator::BeginProfile(
    const BeginProfileRequest& request, absl::Time now) {
  ASSIGN_OR_RETURN(BeginProfileReply reply, profiles_.Begin(request, now));
  job_.Say(absl::StrCat("profile ", reply.number(), " of ", request.steps(),
                        " steps of each worker begins"));
  job_.RaiseVersion();
  return reply;
}

absl::StatusOr<AddProfileReply> Coordinator::AddProfile(
    const AddProfileRequest& request, absl::Time now) {
  RETURN_IF_ERROR(FindSender("add profile", request.sender(), now).status());
  return profiles_.Add(request);
}

JobState Coordinator::StateFor(const TaskKey& asker) const {
  if (WatchesAll(asker)) return State();
  JobState state = StateOfJob();
  for (const TaskKey& key : std::set<TaskKey>{KeyOf(job_.chief()), asker}) {
    const CoordinatorWorker* const worker = job_.members().Find(key);
    if (worker != nullptr) AddTo(state, *worker);
  }
  return state;
}

JobState Coordinator::StateOfJob() const {
  const Members& members = job_.members();
  JobState state;
  state.set_state_version(state_version());
  state.set_phase(phase());
  state.set_model_epoch(job_.epoch().committed());
  state.set_fingerprint(job_.epoch().fingerprint());
  state.set_global_step(job_.budget().steps());
  state.set_examples(job_.budget().examples());
  if (job_.chief().incarnation() != 0) *state.mutable_chief() = job_.chief();
  state.set_stop_reason(job_.stop_reason());
  const auto& ps_incarnations = job_.epoch().ps_incarnations();
  state.mutable_ps_incarnations()->insert(ps_incarnations.begin(),
                                          ps_incarnations.end());
  saves_.AddTo(state);
  state.mutable_staleness_counts()->Add(members.staleness_counts().begin(),
                                        members.staleness_counts().end());
  steps_.AddTo(state);
  steering_.AddTo(state);
  profiles_.AddTo(state);
  state.set_may_go_on(phase() == DONE && job_.options().may_go_on);
  state.set_abandoned(end_.abandoned());
  state.set_highest_index(numbers_.highest());
  *state.mutable_stop() = end_.stop();
  const EvaluationHistory& evaluations = job_.evaluations().history();
  if (evaluations.global_step() > 0) *state.mutable_evaluations() = evaluations;
  return state;
}

std::vector<uint64_t> Coordinator::Incarnations() const {
  std::vector<uint64_t> incarnations;
  for (const auto& [key, worker] : job_.members()) {
    if (worker.registered) incarnations.push_back(worker.sender.incarnation());
  }
  return incarnations;
}

std::vector<TaskKey> Coordinator::ActiveTasks() const {
  const std::set<TaskKey> active = job_.members().Active();
  return {active.begin(), active.end()};
}

}  // namespace muster
