#include "tests/simulation/simulation.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

constexpr absl::Duration kLongestStart = absl::Milliseconds(300);
constexpr absl::Duration kLongestClog = absl::Seconds(5);
// Longer than any deadline, and than a worker is taken for alive.
constexpr double kVeryLongClogs = 0.1;
constexpr absl::Duration kVeryLongClog = absl::Seconds(45);
// The part of the signals to the chief that are carried out.
constexpr double kInterrupts = 0.2;

// The network is whole from here on, and nobody dies any more.
constexpr absl::Duration kHealAfter = absl::Minutes(3);
// By then the job must have ended: some recoveries, each with a few deadlines
// (10 s), a transfer that gives up (20 s) and a lost worker (30 s).
constexpr absl::Duration kMustEndBy = absl::Minutes(8);
// The longest that the tasks may take to leave when the job is done.
constexpr absl::Duration kLeave = absl::Minutes(2);
// A supervisor does not wait for ever. The chief tries longer than this to tell
// ps task 0 that it has finished.
constexpr absl::Duration kLongestRestart = absl::Seconds(3);
constexpr absl::Duration kLongestFullDisk = absl::Seconds(2);

// The share of two jobs' Finishes that ps task 0 dies of, and within how many
// messages.
constexpr double kDiesAtFinish = 0.3;
constexpr double kMessagesOfAnEnd = 3;
// More than a job has workers.
constexpr Endpoint kEndpointsOfJob = 50;

}  // namespace

Simulation::Job::Job(Simulation* simulation, const Scenario& job_scenario)
    : scenario(job_scenario),
      model(MakeSimModel(scenario, simulation->options_.bug)),
      oracle(&simulation->simulator_, &simulation->network_, &model,
             &disk.files, "train") {}

Simulation::Simulation(const Options& options)
    : options_(options),
      scenarios_(MakeScenarios(options.seed, options.tensors)),
      simulator_(options.verbose),
      network_(&simulator_, scenario_),
      random_(scenario_.seed * 17 + 3),
      next_incarnation_(1000),
      faults_left_(scenario_.faults) {
  for (const Scenario& scenario : scenarios_) {
    auto job = std::make_unique<Job>(this, scenario);
    job->first_endpoint +=
        kEndpointsOfJob * static_cast<Endpoint>(jobs_.size());
    jobs_.push_back(std::move(job));
  }
}

Simulation::~Simulation() = default;

SimulationResult Simulation::Run() {
  for (const Scenario& scenario : scenarios_) {
    simulator_.NoteText("scenario", Describe(scenario));
  }
  StartEverybody();
  NextFault();
  simulator_.RunAfter(kHealAfter, [this] {
    network_.Heal();
    faults_left_ = 0;
  });
  const absl::Time start = simulator_.Now();
  const auto failed = [this] { return !Violation().empty(); };
  simulator_.RunUntil([&] { return failed() || AllEnded(); },
                      start + kMustEndBy);
  if (!failed() && !AllEnded()) {
    if (DoOthersLackWorkers()) {
      simulator_.Note("too few replicas are left");
      return Result();
    }
  }
  simulator_.RunUntil([&] { return failed() || EverybodyEnded(); },
                      simulator_.Now() + kLeave);
  if (failed()) return Result();
  if (!serves_many()) CheckPsAtEnd();
  for (const auto& job : jobs_) CheckEnd(*job);
  return Result();
}

void Simulation::StartEverybody() {
  Job& first = *jobs_.front();
  for (int i = 0; i < scenario_.num_ps; ++i) {
    simulator_.RunAfter(kLongestStart * random_.Fraction(), [this, &first, i] {
      StartPs(i);
      if (scenario_.all_reduce) StartWorker(first, i);
    });
  }
  if (scenario_.all_reduce) return;
  for (const auto& job : jobs_) {
    for (int i = 0; i < job->scenario.num_workers; ++i) {
      simulator_.RunAfter(StartOf(*job, i), [this, job = job.get(), i] {
        if (!job->ended()) StartWorker(*job, i);
      });
    }
  }
}

absl::Duration Simulation::StartOf(const Job& job, int index) {
  const bool is_late = index >= job.scenario.first_late;
  return random_.Fraction() * (is_late
                                   ? kLongestStart + scenario_.between_faults *
                                                         (1 + scenario_.faults)
                                   : kLongestStart);
}

SimulationResult Simulation::Result() {
  SimulationResult result;
  result.violation = Violation();
  result.history = simulator_.history();
  result.parameters = jobs_.front()->oracle.NewestParameters();
  result.virtual_time = simulator_.elapsed();
  result.faults = faults_;
  for (const auto& job : jobs_) {
    result.restores += job->oracle.restores();
    result.saves += job->oracle.saves();
  }
  TakeDown();
  return result;
}

std::string Simulation::Violation() const {
  for (const auto& job : jobs_) {
    const std::string& violation = job->oracle.violation();
    if (violation.empty()) continue;
    return serves_many()
               ? absl::StrCat("job '", job->scenario.space, "' ", violation)
               : violation;
  }
  return "";
}

// ---- Processes ------------------------------------------------------------

void Simulation::StartPs(int task) {
  SimPs::Options options;
  options.simulator = &simulator_;
  options.network = &network_;
  for (const auto& job : jobs_) {
    options.oracles[job->scenario.space] = &job->oracle;
  }
  options.keeps_serving = serves_many();
  options.task = task;
  options.incarnation = next_incarnation_++;
  options.seed = scenario_.seed;
  options.latency = scenario_.latency;
  options.num_workers = scenario_.is_open ? 0 : scenario_.num_workers;
  options.bug = options_.bug;
  options.on_exit = [this](SimPs* ps) { RestartPs(ps->task()); };
  options.on_finish = [this] { OnFinish(); };
  simulator_.Note("ps starts", task);
  ps_.push_back(std::make_unique<SimPs>(options));
  ps_of_[task] = ps_.back().get();
  ps_.back()->Start();
}

void Simulation::StartWorker(Job& job, int index) {
  SimWorker::Options options;
  options.simulator = &simulator_;
  options.network = &network_;
  options.oracle = &job.oracle;
  options.disk = &job.disk;
  options.model = &job.model;
  options.first_endpoint = job.first_endpoint;
  options.index = index;
  options.incarnation = next_incarnation_++;
  options.bug = options_.bug;
  options.on_exit = [this, &job](SimWorker* worker, int code) {
    OnExit(job, worker, code);
  };
  workers_.push_back(std::make_unique<SimWorker>(options));
  job.workers.push_back(workers_.back().get());
  SimWorker* const newest = job.worker_of[index];
  const bool is_second = newest != nullptr && newest->alive();
  if (!is_second) job.worker_of[index] = workers_.back().get();
  workers_.back()->Start();
}

void Simulation::RestartSoon(const std::function<bool()>& is_over,
                             std::function<void()> start) {
  simulator_.RunAfter(
      std::min(random_.About(scenario_.restart), kLongestRestart),
      [is_over, start = std::move(start)] {
        if (!is_over()) start();
      });
}

void Simulation::RestartPs(int task) {
  RestartSoon([this] { return AllEnded(); },
              [this, task] {
                StartPs(task);
                if (scenario_.all_reduce) StartWorker(*jobs_.front(), task);
              });
}

// As worker/worker_process: a worker that ends too early takes its ps task
// along, which has the chief save before.
void Simulation::RestartWorker(Job& job, int index) {
  if (!scenario_.all_reduce) {
    return RestartSoon([&job] { return job.ended(); },
                       [this, &job, index] { StartWorker(job, index); });
  }
  if (ps_of_[index]->alive()) return ps_of_[index]->Terminate();
  RestartPs(index);
}

void Simulation::OnExit(Job& job, SimWorker* worker, int exit_code) {
  exit_codes_[worker->incarnation()] = exit_code;
  if (exit_code == 128 + SIGTERM && worker->said_error()) {
    warned_.insert(worker->incarnation());
  }
  if (exit_code == kExitRetryable && job.oracle.HasEndedUnsaved()) {
    left_unsaved_.insert(worker->incarnation());
  }
  const int index = worker->index();
  const bool is_newest = job.worker_of[index] == worker;
  if (!is_newest && exit_code == kExitBadConfig) return;  // a second chief
  if (exit_code == kExitDone && worker->is_chief()) {
    // From here on nobody could restore what a ps loses: README.md says more.
    if (!serves_many()) faults_left_ = 0;
    // An interrupted chief, which said what may be missing, may have finished
    // before this one was started.
    if (!job.oracle.interrupted()) job.oracle.CheckDiskAtEnd();
  }
  if (exit_code == kExitDone) return;
  const bool may_leave = index >= job.scenario.first_late;
  if (exit_code == 128 + SIGTERM && may_leave && random_.Happens(0.5)) return;
  if (exit_code >= 128) return RestartWorker(job, index);
  job.oracle.Fail(
      absl::StrCat("worker ", index, " exits with code ", exit_code));
}

// ---- What happens to the job ------------------------------------------------

void Simulation::NextFault() {
  simulator_.RunAfter(random_.About(scenario_.between_faults), [this] {
    if (faults_left_ == 0 || AllEnded()) return;
    --faults_left_;
    ++faults_;
    DoFault();
    NextFault();
  });
}

// One job alone needs no dice.
Simulation::Job& Simulation::AnyJob() {
  if (!serves_many()) return *jobs_.front();
  const auto last = static_cast<int64_t>(jobs_.size()) - 1;
  return *jobs_[random_.Between(0, last)];
}

int Simulation::AnyWorker(const Job& job) {
  return static_cast<int>(random_.Between(0, job.scenario.num_workers - 1));
}

bool Simulation::IsAnyJobLeaving() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [this](const auto& job) {
    const auto chief = job->worker_of.find(0);
    return (job->ended() || IsChiefDone(*job)) &&
           !(chief != job->worker_of.end() && chief->second->alive()) &&
           std::any_of(job->workers.begin(), job->workers.end(),
                       [](const SimWorker* worker) { return worker->alive(); });
  });
}

bool Simulation::IsChiefDone(const Job& job) const {
  const auto chief = job.worker_of.find(0);
  if (chief == job.worker_of.end() || chief->second == nullptr) return false;
  const auto code = exit_codes_.find(chief->second->incarnation());
  return code != exit_codes_.end() && code->second == kExitDone;
}

void Simulation::DoFault() {
  const auto ps = static_cast<int>(random_.Between(0, scenario_.num_ps - 1));
  Job& job = AnyJob();
  switch (random_.Between(0, 14)) {
    case 0:
    case 1:
    case 2:
      return KillPs(ps);
    case 3:
    case 4:
      return KillWorker(job, 0);
    case 5:
      return KillWorker(job, AnyWorker(job));
    case 6:
      return TerminateWorker(job, AnyWorker(job));
    case 7:
      return StartSecondChief(job);
    case 8:
    case 9:
      return TerminatePs(ps);
    case 10:
    case 11:
      return StopSomething(job);
    case 12:
      return FillDisk(job);
    default:
      return ClogSomething(job);
  }
}

void Simulation::KillPs(int task) {
  SimPs* const ps = ps_of_[task];
  if (ps == nullptr || !ps->alive()) return;
  if (serves_many() && IsAnyJobLeaving()) return;
  simulator_.Note("ps dies", task);
  ps->Die();
  // A machine that dies says nothing; the connections of a process break.
  if (random_.Happens(0.8)) {
    for (const auto& worker : workers_) worker->caller().OnPsDeath(task);
    for (const auto& other : ps_) other->caller().OnPsDeath(task);
  }
  if (scenario_.all_reduce) EndWorker(*jobs_.front(), task);
  RestartPs(task);
}

void Simulation::OnFinish() {
  if (!serves_many() || faults_left_ == 0 || kills_at_finish_left_ == 0 ||
      !random_.Happens(kDiesAtFinish)) {
    return;
  }
  --kills_at_finish_left_;
  ++faults_;
  simulator_.RunAfter(scenario_.latency * kMessagesOfAnEnd * random_.Fraction(),
                      [this] { KillPs(0); });
}

// The process, and perhaps its machine.
void Simulation::EndWorker(Job& job, int index) {
  SimWorker* const worker = job.worker_of[index];
  worker->Die();
  if (worker->is_chief() && random_.Happens(scenario_.power_loss)) {
    simulator_.Note("power loss");
    job.disk.files.CutPower();
  }
}

void Simulation::KillWorker(Job& job, int index) {
  if (scenario_.all_reduce) return KillPs(index);
  SimWorker* const worker = job.worker_of[index];
  if (worker == nullptr || !worker->alive()) return;
  if (serves_many() && job.ended()) return;
  EndWorker(job, index);
  RestartWorker(job, index);
}

void Simulation::TerminatePs(int task) {
  if (scenario_.all_reduce) return TerminateWorker(*jobs_.front(), task);
  SimPs* const ps = ps_of_[task];
  if (serves_many() && IsAnyJobLeaving()) return;
  if (ps != nullptr && ps->alive()) ps->Terminate();
}

// The chief's SIGTERM ends the job, so that it is rare.
void Simulation::TerminateWorker(Job& job, int index) {
  SimWorker* const worker = job.worker_of[index];
  if (worker == nullptr || !worker->alive()) return;
  if (serves_many() && job.ended()) return;
  if (index == 0 && !random_.Happens(kInterrupts)) return;
  if (index == 0) job.oracle.ChiefInterrupted();
  worker->Terminate(SIGTERM);
}

// SIGSTOP, and SIGCONT after a while.
void Simulation::StopSomething(Job& job) {
  const absl::Duration longest =
      random_.Happens(kVeryLongClogs) ? kVeryLongClog : kLongestClog;
  const absl::Time until = simulator_.Now() + longest * random_.Fraction();
  const bool is_ps = random_.Happens(0.5);
  const auto task = static_cast<int>(random_.Between(
      0, (is_ps ? scenario_.num_ps : job.scenario.num_workers) - 1));
  simulator_.Note("stop", is_ps, task,
                  absl::ToInt64Milliseconds(until - simulator_.Now()));
  const bool is_both = scenario_.all_reduce;
  SimPs* const ps = is_ps || is_both ? ps_of_[task] : nullptr;
  SimWorker* const worker = !is_ps || is_both ? job.worker_of[task] : nullptr;
  if (ps != nullptr && ps->alive()) ps->process().Stop(until);
  if (worker != nullptr && worker->alive()) worker->process().Stop(until);
}

void Simulation::FillDisk(Job& job) {
  job.disk.full_until =
      simulator_.Now() + kLongestFullDisk * random_.Fraction();
  simulator_.Note("disk is full");
}

// A mistake of whoever starts the tasks: the first one is alive.
void Simulation::StartSecondChief(Job& job) {
  // In all-reduce it does not get the port of its ps task.
  if (scenario_.all_reduce) return;
  SimWorker* const chief = job.worker_of[0];
  if (chief == nullptr || !chief->alive()) return;
  if (job.disk.lock_holder != chief->incarnation()) return;
  StartWorker(job, 0);
}

void Simulation::ClogSomething(Job& job) {
  const absl::Duration longest =
      random_.Happens(kVeryLongClogs) ? kVeryLongClog : kLongestClog;
  const absl::Time until = simulator_.Now() + longest * random_.Fraction();
  const auto ps = static_cast<int>(random_.Between(0, scenario_.num_ps - 1));
  const Endpoint worker = job.first_endpoint + AnyWorker(job);
  const int64_t what = random_.Between(0, 3);
  simulator_.Note("clog", what, ps, worker,
                  absl::ToInt64Milliseconds(until - simulator_.Now()));
  if (what == 0) return network_.ClogAll(ps, until);
  if (what == 1) return network_.ClogAll(worker, until);
  network_.Clog(ps, worker, until);
}

// ---- The end ----------------------------------------------------------------

bool Simulation::AllEnded() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& job) { return job->ended(); });
}

bool Simulation::EverybodyEnded() const {
  // Those that serve many jobs stay.
  const bool ps_ended =
      serves_many() || std::none_of(ps_.begin(), ps_.end(),
                                    [](const auto& ps) { return ps->alive(); });
  return ps_ended &&
         std::none_of(workers_.begin(), workers_.end(),
                      [](const auto& worker) { return worker->alive(); });
}

void Simulation::CheckEnd(Job& job) {
  CheckWorkersAtEnd(job);
  // A chief that was lost has not saved, and ends with 138 (OnExit checks those
  // that end with 0); one that was stopped by a signal may have warned that a
  // step is missing.
  for (const WorkerState& worker : job.oracle.end()->workers()) {
    const uint64_t incarnation = worker.sender().incarnation();
    if (worker.sender().task().index() != 0 || !worker.finished()) continue;
    if (warned_.count(incarnation) > 0) continue;
    // The disk was full, and no other start of the chief came in time.
    if (ps_of_.at(0)->KeptModelOf(job.scenario.space, incarnation)) continue;
    job.oracle.CheckDiskAtEnd();
  }
}

bool Simulation::DoOthersLackWorkers() {
  bool lacks = true;
  for (const auto& job : jobs_) {
    // A worker came when all was done, to a ps task 0 that knows of nothing.
    const Coordinator* const at_first =
        ps_of_.at(0)->FindCoordinator(job->scenario.space);
    const bool is_forgotten =
        IsChiefDone(*job) &&
        (at_first == nullptr || at_first->State().model_epoch() == 0);
    if (job->ended() || is_forgotten || TooFewAreLeft(*job)) continue;
    lacks = false;
    job->oracle.Fail("the job does not end");
  }
  return lacks;
}

bool Simulation::TooFewAreLeft(const Job& job) const {
  if (!job.oracle.interrupted() || job.scenario.mode != Mode::kSync) {
    return false;
  }
  int left = 0;
  for (const auto& [index, worker] : job.worker_of) {
    if (worker == nullptr) continue;
    const auto code = exit_codes_.find(worker->incarnation());
    const bool has_ended =
        code != exit_codes_.end() && code->second == kExitDone;
    if (!has_ended) ++left;
  }
  return left < job.scenario.min_replicas;
}

void Simulation::CheckPsAtEnd() {
  const SimPs& first = *ps_of_.at(0);
  for (const auto& ps : ps_) {
    if (!ps->alive() || (ps->task() != 0 && first.WaitedFor(ps->task()))) {
      continue;
    }
    jobs_.front()->oracle.Fail(
        absl::StrCat("ps task ", ps->task(), " does not end"));
  }
}

void Simulation::CheckWorkersAtEnd(Job& job) {
  // Who was not a live member at the end has nobody who would tell it (it
  // exits with 138 in the end); all others know.
  for (const WorkerState& state : job.oracle.end()->workers()) {
    const uint64_t incarnation = state.sender().incarnation();
    if (!state.finished() || incarnation == 0) continue;
    const auto code = exit_codes_.find(incarnation);
    const SimWorker* const newest =
        job.worker_of[state.sender().task().index()];
    if (newest->incarnation() != incarnation) continue;
    if (code != exit_codes_.end() &&
        (code->second == kExitDone || code->second == 128 + SIGTERM ||
         left_unsaved_.count(incarnation) > 0 ||
         ps_of_.at(0)->KeptModelOf(job.scenario.space, incarnation))) {
      continue;
    }
    // Killed on its last way out.
    if (code == exit_codes_.end() && !newest->alive()) continue;
    job.oracle.Fail(absl::StrCat(
        TaskName(state.sender()), " has finished, but ",
        code == exit_codes_.end() ? "does not end"
                                  : absl::StrCat("exits with ", code->second)));
  }
}

void Simulation::TakeDown() {
  for (const auto& ps : ps_) ps->Die();
  for (const auto& worker : workers_) worker->Die();
  simulator_.RunUntil([this] { return !simulator_.has_threads(); },
                      absl::InfiniteFuture());
}

SimulationResult Simulate(uint64_t seed, Bug bug, Tensors tensors) {
  Simulation::Options options;
  options.seed = seed;
  options.bug = bug;
  options.tensors = tensors;
  return Simulation(options).Run();
}

}  // namespace muster
