#include "tests/simulation/oracle.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/train_dir.h"
#include "tests/simulation/sim_ps.h"

namespace muster {
namespace {

// Reading a shard costs more than a push; each n-th push is enough, and the
// cuts, the commits and the end are looked at as well.
constexpr int64_t kPushesPerCheck = 4;

}  // namespace

// The starts of workers of which each shard that has parts has a mark.
std::set<uint64_t> Oracle::MarkedStarts(
    const CheckpointManifest& manifest) const {
  std::map<uint64_t, int> marks;
  int shards = 0;
  for (const ShardCut& shard : manifest.shards()) {
    if (model_->blocks_of[shard.ps_task()].empty()) continue;
    ++shards;
    for (const WorkerMark& mark : shard.marks()) ++marks[mark.incarnation()];
  }
  std::set<uint64_t> starts;
  for (const auto& [start, count] : marks) {
    if (count == shards) starts.insert(start);
  }
  return starts;
}

void Oracle::Fail(absl::string_view what) {
  simulator_->NoteText("BROKEN PROMISE", what);
  if (!violation_.empty()) return;
  violation_ = absl::StrCat(
      "after ", absl::FormatDuration(simulator_->elapsed()), ": ", what);
}

// ---- A worker's side ----------------------------------------------------

void Oracle::PushSent(int ps, const PushPart& header) {
  const int worker = header.sender().task().index();
  simulator_->Note("push sent", ps, worker, header.step(), header.part());
  const int64_t open =
      ShardOf(header.fence().ps_incarnation(), header.fence().model_epoch())
          .pushes[{header.part(), worker}]
          .Sent(header.sender().incarnation(), header.step());
  if (open != 0) {
    Fail(absl::StrCat("worker ", worker, " pushes step ", header.step(),
                      " to ps task ", ps, ", which has not said in this epoch ",
                      "that it has part ", header.part(), " of step ", open));
  }
  round_of_[{header.sender().incarnation(), header.step()}] = header.round();
}

// How stale an update can be, if nobody has come or gone since its pull.
void Oracle::CheckStaleness(const PushPart& header, const PushReply& reply) {
  const Scenario& scenario = model_->scenario;
  if (scenario.mode != Mode::kBoundedStaleness || reply.duplicate() ||
      !clocks_.SameWorkersSincePull(header.sender().incarnation())) {
    return;
  }
  const int64_t most =
      int64_t{scenario.num_workers - 1} * (2 * scenario.bound + 1);
  if (reply.staleness() <= most) return;
  Fail(absl::StrCat("step ", header.step(), " of worker ",
                    header.sender().task().index(), " is ", reply.staleness(),
                    " updates stale, at most ", most, " were promised"));
}

void Oracle::PushAcknowledged(int ps, const PushPart& header,
                              const PushReply& reply) {
  CheckStaleness(header, reply);
  const int worker = header.sender().task().index();
  simulator_->Note("push acknowledged", ps, worker, header.step(),
                   header.part());
  ShardOf(header.fence().ps_incarnation(), header.fence().model_epoch())
      .pushes[{header.part(), worker}]
      .Acknowledged(header.sender().incarnation(), header.step());
}

void Oracle::StepCompleted(const Sender& sender, int64_t epoch,
                           uint64_t first_ps_incarnation, int64_t step) {
  simulator_->Note("step completed", sender.task().index(), epoch, step);
  epochs_[{epoch, first_ps_incarnation}].completed.insert(
      {sender.task().index(), sender.incarnation(), step});
}

void Oracle::StepConfirmed(const StepRequest& request) {
  if (request.abandoned()) {
    uncounted_.insert({request.sender().incarnation(), request.step()});
  }
  simulator_->Note("step confirmed", request.sender().task().index(),
                   request.model_epoch(), request.step(), request.abandoned());
}

void Oracle::Saved(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<CheckpointReader>> reader =
      CheckpointReader::Open(disk_, path);
  if (!reader.ok()) {
    return Fail(absl::StrCat("a reported checkpoint cannot be read: ",
                             reader.status().ToString()));
  }
  ++saves_;
  const CheckpointManifest& manifest = (*reader)->manifest();
  newest_saved_ = std::max(newest_saved_, manifest.global_step());
  reported_.insert(manifest.global_step());
  CheckRetention();
  std::vector<HeldRows> parts;
  for (const ShardCut& shard : manifest.shards()) {
    const std::optional<TensorValues> saved =
        ReadCheckpoint(path, shard.ps_task());
    const ShardCuts& cuts = cuts_[{shard.ps_task(), manifest.model_epoch()}];
    // Only in sync does a shard know the global step of its cut.
    const auto global_step =
        is_sync() ? std::make_optional(manifest.global_step()) : std::nullopt;
    const std::map<int, HeldRows>* const rows =
        saved.has_value() ? cuts.Find(shard, *saved, global_step) : nullptr;
    if (rows == nullptr) {
      return Fail(absl::StrCat(path, " does not hold what ps task ",
                               shard.ps_task(), " had at one instant"));
    }
    for (const auto& [part, held] : *rows) parts.push_back(held);
  }
  FailIfAny(rows_.CheckLedger(manifest.ledger(), parts));
  FailIfAny(rows_.CheckNewest(manifest.ledger(), parts, MarkedStarts(manifest),
                              uncounted_));
  if (NumDone(manifest.ledger()) != manifest.examples()) {
    Fail(absl::StrCat(path, " counts ", manifest.examples(), " rows, ",
                      NumDone(manifest.ledger()), " are done"));
  }
}

void Oracle::CutConfirmed(uint64_t ps_incarnation,
                          const ConfirmCutRequest& request,
                          const ConfirmCutReply& reply) {
  for (const HeldStep& held : request.held()) {
    uncounted_.insert({held.sender().incarnation(), held.step()});
  }
  Epoch& epoch = epochs_[{request.model_epoch(), ps_incarnation}];
  for (const HeldStep& held : reply.counted()) {
    uncounted_.erase({held.sender().incarnation(), held.step()});
    epoch.completed.insert({held.sender().task().index(),
                            held.sender().incarnation(), held.step()});
  }
}

// Those that were saved by a chief that died before it said so count, too.
void Oracle::CheckRetention() {
  const absl::StatusOr<std::vector<int64_t>> steps =
      ListCheckpoints(disk_, train_dir_);
  if (!steps.ok()) return Fail(steps.status().ToString());
  for (const int64_t step : reported_) {
    int newer = 0;
    bool is_there = false;
    for (const int64_t one : *steps) {
      newer += one > step;
      is_there |= one == step;
    }
    if (is_there || newer >= model_->scenario.keep) continue;
    Fail(absl::StrCat("the checkpoint of step ", step, " is gone, but only ",
                      newer, " newer ones are there, ", model_->scenario.keep,
                      " are to be kept"));
  }
}

// ---- A ps' side -----------------------------------------------------------

void Oracle::AfterPush(SimPs* ps) {
  if (++pushes_ % kPushesPerCheck == 0) CheckShard(ps);
}

void Oracle::CheckShard(SimPs* ps) {
  const std::optional<TensorValues> values =
      ps->shard().Values(space(), model_->SlicesOf(ps->task()));
  if (!values.has_value()) return;
  const Shard& shard =
      ShardOf(ps->incarnation(), ps->shard().State(space()).model_epoch());
  if (shard.base.empty()) return;  // not committed
  if (is_sync()) return CheckRounds(*ps, shard, *values);
  for (size_t i = 0; i < values->size(); ++i) {
    for (int worker = 0; worker < model_->scenario.num_workers; ++worker) {
      CheckCounter(*ps, shard, static_cast<int>(i), worker, *values);
    }
  }
}

void Oracle::CheckRounds(const SimPs& ps, const Shard& shard,
                         const TensorValues& values) {
  const Epoch& epoch =
      epochs_[{ps.shard().State(space()).model_epoch(), shard.first}];
  const int64_t updates = ps.shard().State(space()).version();
  std::vector<float> added(model_->scenario.num_workers, 0.0f);
  for (int64_t i = 1; i <= updates; ++i) {
    const auto chosen = epoch.chosen.find(shard.global_step + i);
    if (chosen == epoch.chosen.end()) {
      return Fail(absl::StrCat("ps task ", ps.task(), " has made update ",
                               shard.global_step + i,
                               ", for which nobody was chosen"));
    }
    for (const auto& [worker, incarnation, step] : chosen->second) {
      added[worker] +=
          static_cast<float>(SimModel::kUnit *
                             SimModel::PushValue(incarnation, step)) /
          static_cast<float>(chosen->second.size());
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t first = model_->blocks_of[ps.task()][i].first;
    for (int worker = 0; worker < model_->scenario.num_workers; ++worker) {
      const float wanted = shard.base[i][first + worker] + added[worker];
      const float value = values[i][first + worker];
      if (value == wanted) continue;
      return Fail(absl::StrCat("ps task ", ps.task(), ", block ", i,
                               " after update ", shard.global_step + updates,
                               ": element ", first + worker, " is ", value,
                               ", the chosen steps make it ", wanted));
    }
  }
}

void Oracle::CheckCounter(const SimPs& ps, const Shard& shard, int index,
                          int worker, const TensorValues& values) {
  const CounterBlock& block = model_->blocks_of[ps.task()][index];
  const int64_t element = block.first + worker;
  const float sum =
      (values[index][element] - shard.base[index][element]) / SimModel::kUnit;
  const auto pushes = shard.pushes.find({block.part, worker});
  const PushSums none;
  const PushSums& known = pushes == shard.pushes.end() ? none : pushes->second;
  const bool is_whole = sum == std::floor(sum);
  if (is_whole && known.Explains(static_cast<int64_t>(sum))) return;
  Fail(absl::StrCat(
      "ps task ", ps.task(), " in epoch ",
      ps.shard().State(space()).model_epoch(), ": of worker ", worker, "'s ",
      "pushes of '", model_->placed.tensors[block.tensor].name(), "' from ",
      block.begin, " on, ", known.Describe(), ", the applied ones make ", sum));
}

void Oracle::AfterCut(SimPs* ps, const BeginSnapshotReply& cut) {
  CheckShard(ps);
  const std::optional<TensorValues> values =
      ps->shard().Values(space(), model_->SlicesOf(ps->task()));
  if (!values.has_value()) return;
  const int64_t epoch = ps->shard().State(space()).model_epoch();
  simulator_->Note("cut", ps->task(), epoch, cut.version());
  const Shard& shard = ShardOf(ps->incarnation(), epoch);
  cuts_[{ps->task(), epoch}].Add(cut, shard.global_step + cut.version(),
                                 *values, RowsHeld(*ps, *values));
  // In sync the marks are of the chosen steps alone.
  if (!is_sync()) CheckMarks(ps, cut);
}

std::map<int, HeldRows> Oracle::RowsHeld(const SimPs& ps,
                                         const TensorValues& values) {
  const int64_t epoch_number = ps.shard().State(space()).model_epoch();
  const Shard& shard = ShardOf(ps.incarnation(), epoch_number);
  const Epoch& epoch = epochs_[{epoch_number, shard.first}];
  std::map<int, HeldRows> held;
  if (shard.base.empty()) return held;  // not committed
  for (size_t i = 0; i < values.size(); ++i) {
    const CounterBlock& block = model_->blocks_of[ps.task()][i];
    const auto [part, is_new] = held.try_emplace(block.part);
    if (!is_new) continue;
    const auto before = shard.rows.find(block.part);
    if (before != shard.rows.end()) part->second.before = before->second;
    PushSums::Steps& steps = part->second.steps;
    for (const auto& [key, pushes] : shard.pushes) {
      const auto& [of, worker] = key;
      if (of != block.part || is_sync()) continue;
      const int64_t element = block.first + worker;
      const float sum =
          (values[i][element] - shard.base[i][element]) / SimModel::kUnit;
      steps.merge(pushes.Applied(static_cast<int64_t>(sum)));
    }
    const int64_t updates =
        shard.global_step + ps.shard().State(space()).version();
    for (const auto& [update, chosen] : epoch.chosen) {
      if (update > updates) continue;
      for (const auto& [worker, incarnation, step] : chosen) {
        steps.insert({incarnation, step});
      }
    }
  }
  return held;
}

void Oracle::CheckMarks(SimPs* ps, const BeginSnapshotReply& cut) {
  const Shard& shard =
      ShardOf(ps->incarnation(), ps->shard().State(space()).model_epoch());
  for (const DuplicateMark& mark : cut.marks()) {
    const std::set<int32_t> parts(mark.parts().begin(), mark.parts().end());
    for (const auto& [key, pushes] : shard.pushes) {
      const auto& [part, worker] = key;
      if (worker != mark.sender().task().index()) continue;
      for (const auto& [incarnation, step] : pushes.acknowledged()) {
        if (incarnation != mark.sender().incarnation()) continue;
        const bool is_marked = step < mark.step() ||
                               (step == mark.step() && parts.count(part) > 0);
        if (is_marked) continue;
        Fail(absl::StrCat("ps task ", ps->task(), ": part ", part, " of step ",
                          step, " of worker ", worker,
                          " was acknowledged, its mark says step ",
                          mark.step()));
      }
    }
  }
}

// Incarnations rise in the order of the starts.
void Oracle::Registered(uint64_t ps_incarnation, const Sender& sender) {
  uint64_t& newest = registered_[{ps_incarnation, sender.task().index()}];
  if (sender.incarnation() < newest) {
    Fail(absl::StrCat("incarnation ", sender.incarnation(), " of ",
                      TaskName(sender), " takes over from ", newest,
                      ", which started later"));
  }
  newest = sender.incarnation();
}

void Oracle::LeaseUsed(uint64_t ps_incarnation, const Sender& sender) {
  if (chiefs_[ps_incarnation] == sender.incarnation()) return;
  Fail(absl::StrCat("incarnation ", sender.incarnation(),
                    " begins or commits an epoch, the chief is ",
                    chiefs_[ps_incarnation]));
}

// Where a step was under way for longer than the pause, or the model was loaded
// anew meanwhile, production does not promise it.
void Oracle::PsLeavesSaved(int task) {
  const SimPs* const ps = network_->ps(0);
  const Coordinator* const job =
      ps == nullptr ? nullptr : ps->FindCoordinator(space());
  if (job == nullptr || job->outstanding_grants() > 0) return;
  const JobState state = job->State();
  if (state.model_epoch() == 0 || state.global_step() <= newest_saved_) return;
  Fail(absl::StrCat("ps task ", task, " leaves and says that the model is ",
                    "saved; step ", state.global_step(),
                    " is counted, the newest checkpoint is of step ",
                    newest_saved_));
}

void Oracle::AfterCommit(const CommitEpochRequest& request) {
  const uint64_t first = request.ps_incarnations().at(0);
  const auto [epoch, is_new] =
      epochs_.try_emplace({request.model_epoch(), first});
  epoch->second.global_step = request.global_step();
  simulator_->Note("commit", request.model_epoch(), request.global_step());
  if (is_new) ++restores_;
  if (is_new && request.global_step() < newest_saved_) {
    Fail(absl::StrCat("epoch ", request.model_epoch(), " begins at step ",
                      request.global_step(), ", but step ", newest_saved_,
                      " was reported as saved"));
  }
  // In order: the map's own is another one in each process.
  const std::map<int, uint64_t> starts(request.ps_incarnations().begin(),
                                       request.ps_incarnations().end());
  std::vector<HeldRows> parts;
  for (const auto& [task, incarnation] : starts) {
    SimPs* const ps = network_->ps(task);
    // One that has died meanwhile will be found out.
    if (ps == nullptr || ps->incarnation() != incarnation) continue;
    Shard& shard = ShardOf(incarnation, request.model_epoch());
    if (!shard.base.empty()) continue;  // a repeat
    const std::optional<TensorValues> values =
        ps->shard().Values(space(), model_->SlicesOf(task));
    if (!values.has_value() ||
        ps->shard().State(space()).model_epoch() != request.model_epoch()) {
      Fail(absl::StrCat(
          "epoch ", request.model_epoch(), " is committed, ps task ", task,
          " is ", ShardPhase_Name(ps->shard().State(space()).phase()),
          " at epoch ", ps->shard().State(space()).model_epoch()));
    }
    if (!values.has_value()) continue;
    CheckRestored(request, ps, *values);
    shard.base = *values;
    shard.global_step = request.global_step();
    shard.first = first;
    shard.rows = RestoredRows(request.global_step(), task);
    for (const auto& [part, rows] : shard.rows) parts.push_back({rows, {}});
  }
  FailIfAny(rows_.CheckLedger(request.ledger(), parts));
}

std::map<int, RowVisits> Oracle::RestoredRows(int64_t global_step, int ps) {
  std::map<int, RowVisits> visits;
  const std::string path = PathOf(global_step);
  const auto reader = CheckpointReader::Open(disk_, path);
  const std::optional<TensorValues> values = ReadCheckpoint(path, ps);
  if (!reader.ok() || !values.has_value()) return visits;
  const CheckpointManifest& manifest = (*reader)->manifest();
  for (const ShardCut& shard : manifest.shards()) {
    if (shard.ps_task() != ps) continue;
    const std::map<int, HeldRows>* const rows =
        cuts_[{ps, manifest.model_epoch()}].Find(shard, *values, std::nullopt);
    if (rows == nullptr) continue;
    for (const auto& [part, held] : *rows) visits[part] = rows_.VisitsOf(held);
  }
  return visits;
}

// An epoch begins with exactly what is in its checkpoint, or with zeros.
void Oracle::CheckRestored(const CommitEpochRequest& request, SimPs* ps,
                           const TensorValues& values) {
  std::optional<TensorValues> wanted =
      ReadCheckpoint(PathOf(request.global_step()), ps->task());
  if (!wanted.has_value() && request.global_step() > 0) {
    return Fail(absl::StrCat("epoch ", request.model_epoch(),
                             " begins at step ", request.global_step(),
                             ", of which there is no checkpoint"));
  }
  if (!wanted.has_value()) {
    wanted.emplace();
    for (const TensorSlice& slice : model_->SlicesOf(ps->task())) {
      wanted->emplace_back(slice.length(), 0.0f);
    }
  }
  if (SameBits(*wanted, values)) return;
  Fail(absl::StrCat("epoch ", request.model_epoch(), " begins at step ",
                    request.global_step(), ", but ps task ", ps->task(),
                    " does not hold what was saved of that step"));
}

void Oracle::AfterStep(const Coordinator& coordinator) {
  const SimPs* const ps = network_->ps(0);
  const JobState state = coordinator.State();
  if (ps == nullptr || state.model_epoch() == 0) return;
  const Epoch& epoch = epochs_[{state.model_epoch(), ps->incarnation()}];
  const int64_t counted = state.global_step() - epoch.global_step;
  const auto completed = static_cast<int64_t>(epoch.completed.size());
  if (counted > completed) {
    Fail(absl::StrCat("epoch ", state.model_epoch(), ": ", counted,
                      " steps are counted, ", completed,
                      " were acknowledged by all shards"));
  }
  const Scenario& scenario = model_->scenario;
  const int64_t limit = scenario.RowLimit();
  const RowCounts& rows = state.rows();
  if (limit > 0 ? rows.done() > limit
                : state.global_step() > scenario.stop_steps) {
    Fail(absl::StrCat("global step ", state.global_step(), " of ",
                      scenario.stop_steps, ", ", rows.done(), " rows of ",
                      limit));
  }
  const bool may_repeat = !is_sync() && scenario.faults > 0;
  if (rows.done() != state.examples() || rows.skipped() > 0 ||
      (!may_repeat && rows.repeated() > 0)) {
    Fail(absl::StrCat("steps of ", state.examples(), " rows are counted, ",
                      rows.done(), " rows are done, ", rows.skipped(),
                      " passed over and ", rows.repeated(), " repeated"));
  }
}

void Oracle::AtJobEnd(const JobState& state) {
  end_ = state;
  simulator_->Note("job end", state.model_epoch(), state.global_step());
  // A ps task 0 that was started after the last save knows of no step; the
  // chief, which has saved, has told it that the job is over.
  const bool is_told = state.model_epoch() == 0 &&
                       absl::StartsWith(state.stop_reason(), "done ");
  const bool is_interrupted =
      interrupted_ && absl::StartsWith(state.stop_reason(), "interrupted");
  const bool is_by_rows = model_->scenario.RowLimit() > 0;
  if (!is_told && !is_interrupted && is_by_rows) {
    CheckRowsAtEnd(state.rows().done());
  }
  if (!is_told && !is_interrupted && !is_by_rows &&
      state.global_step() != model_->scenario.stop_steps) {
    Fail(absl::StrCat("the job is done (", state.stop_reason(), ") at step ",
                      state.global_step(), " of ",
                      model_->scenario.stop_steps));
  }
  if (!is_told && !interrupted_ && !state.unsaved()) CheckDiskAtEnd();
  for (int i = 0; i < model_->scenario.num_ps; ++i) {
    if (network_->ps(i) != nullptr) CheckShard(network_->ps(i));
  }
}

void Oracle::CheckRowsAtEnd(int64_t done) {
  const int64_t left = model_->scenario.RowLimit() - done;
  if (left < model_->scenario.MostRowsLeft()) return;
  Fail(absl::StrCat("the job is done, ", left, " of ",
                    model_->scenario.RowLimit(), " rows are left"));
}

// ---- Rounds and clocks ----------------------------------------------------

void Oracle::TokenGiven(uint64_t ps_incarnation, int64_t epoch,
                        const StepToken& token) {
  if (token.round() == 0) return;
  Epoch& e = epochs_[{epoch, ps_incarnation}];
  const int64_t made = token.round() - 1;
  simulator_->Note("token", epoch, token.round(), token.chosen_size());
  if (made == e.global_step && token.chosen().empty()) return;
  std::vector<std::tuple<int, uint64_t, int64_t>> chosen;
  for (const ChosenStep& step : token.chosen()) {
    chosen.emplace_back(step.sender().task().index(),
                        step.sender().incarnation(), step.step());
  }
  const auto [known, is_new] = e.chosen.try_emplace(made, chosen);
  if (is_new) return CheckChosen(e, token);
  if (known->second != chosen) {
    Fail(absl::StrCat("the steps of update ", made, " have changed"));
  }
}

void Oracle::CheckChosen(const Epoch& epoch, const StepToken& token) {
  const Scenario& scenario = model_->scenario;
  const int64_t made = token.round() - 1;
  const std::string what =
      absl::StrCat("update ", made, " is of ", token.chosen_size(), " steps");
  if (token.chosen_size() > scenario.replicas_to_aggregate ||
      token.chosen_size() < std::max(1, scenario.min_replicas)) {
    Fail(absl::StrCat(what, ", wanted ", std::max(1, scenario.min_replicas),
                      " to ", scenario.replicas_to_aggregate));
  }
  std::set<int> workers;
  for (const ChosenStep& step : token.chosen()) {
    const int worker = step.sender().task().index();
    const uint64_t incarnation = step.sender().incarnation();
    if (!workers.insert(worker).second) {
      Fail(absl::StrCat(what, ", two of them of worker ", worker));
    }
    if (epoch.completed.count({worker, incarnation, step.step()}) == 0) {
      Fail(absl::StrCat(what, "; not every shard has acknowledged step ",
                        step.step(), " of worker ", worker));
    }
    const int64_t round = round_of_[{incarnation, step.step()}];
    if (round == made) continue;
    Fail(absl::StrCat(what, "; step ", step.step(), " of worker ", worker,
                      " is of round ", round));
  }
}

void Oracle::SampleClocks(uint64_t ps_incarnation,
                          const Coordinator& coordinator) {
  if (model_->scenario.mode != Mode::kBoundedStaleness) return;
  clocks_.Sample(ps_incarnation, coordinator.State());
}

void Oracle::StepGranted(const Sender& sender, const StepReply& reply) {
  FailIfAny(rows_.Granted(sender.incarnation(), reply));
  if (model_->scenario.mode != Mode::kBoundedStaleness) return;
  const int64_t lag = clocks_.LagOf(sender.task().index());
  if (lag <= model_->scenario.bound) return;
  Fail(absl::StrCat("worker ", sender.task().index(), " may take a step with ",
                    "a clock lag of ", lag, ", the bound is ",
                    model_->scenario.bound));
}

// ---- The disk -------------------------------------------------------------

std::string Oracle::PathOf(int64_t global_step) const {
  return absl::StrCat(train_dir_, "/", CheckpointName(global_step));
}

std::optional<TensorValues> Oracle::ReadCheckpoint(const std::string& path,
                                                   int ps) {
  const absl::StatusOr<std::unique_ptr<CheckpointReader>> reader =
      CheckpointReader::Open(disk_, path);
  if (!reader.ok()) return std::nullopt;
  TensorValues values;
  for (const TensorSlice& slice : model_->SlicesOf(ps)) {
    values.emplace_back(slice.length());
    const absl::Status read =
        (*reader)->Read(slice.tensor(), "", slice.offset(), slice.length(),
                        values.back().data());
    if (!read.ok()) return std::nullopt;
  }
  return values;
}

uint64_t Oracle::NewestParameters() {
  const absl::StatusOr<CheckpointReader::Newest> newest =
      CheckpointReader::OpenNewest(disk_, train_dir_);
  if (!newest.ok()) return 0;
  RunningHash hash;
  for (int ps = 0; ps < model_->scenario.num_ps; ++ps) {
    const std::optional<TensorValues> values =
        ReadCheckpoint(newest->reader->path(), ps);
    if (!values.has_value()) return 0;
    for (const std::vector<float>& tensor : *values) {
      hash.Add({reinterpret_cast<const char*>(tensor.data()),
                tensor.size() * sizeof(float)});
    }
  }
  return hash.value();
}

void Oracle::CheckDiskAtEnd() {
  // The chief was told to end before anybody took a step.
  if (interrupted_ && end_.has_value() && end_->global_step() == 0) return;
  const absl::StatusOr<CheckpointReader::Newest> newest =
      CheckpointReader::OpenNewest(disk_, train_dir_);
  if (!newest.ok()) {
    return Fail(
        absl::StrCat("no checkpoint at the end: ", newest.status().ToString()));
  }
  const CheckpointManifest& manifest = newest->reader->manifest();
  const int64_t step = manifest.global_step();
  const bool is_told = !end_.has_value() || end_->model_epoch() == 0;
  // Nobody knows any more what was counted of an interrupted job.
  if (is_told && interrupted_ && step >= newest_saved_) return;
  if (is_told && model_->scenario.RowLimit() > 0) {
    return CheckRowsAtEnd(NumDone(manifest.ledger()));
  }
  const int64_t wanted =
      is_told ? model_->scenario.stop_steps : end_->global_step();
  if (step == wanted) return;
  Fail(absl::StrCat("the job is done at step ", wanted,
                    ", its newest checkpoint is of step ", step));
}

}  // namespace muster
