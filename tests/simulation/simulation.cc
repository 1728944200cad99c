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
// Of the signals to the chief, how many are carried out.
constexpr double kInterrupts = 0.2;

// The network is whole from here on, and nobody dies any more.
constexpr absl::Duration kHealAfter = absl::Minutes(3);
// By then the job must have ended: some recoveries, each with a few deadlines
// (10 s), a transfer that gives up (20 s) and a lost worker (30 s).
constexpr absl::Duration kMustEndBy = absl::Minutes(8);
// What the tasks may take to leave when the job is done.
constexpr absl::Duration kLeave = absl::Minutes(2);
// A supervisor does not wait for ever. The chief tries longer than this to tell
// ps task 0 that it has finished.
constexpr absl::Duration kLongestRestart = absl::Seconds(3);
constexpr absl::Duration kLongestFullDisk = absl::Seconds(2);

}  // namespace

Simulation::Simulation(const Options& options)
    : options_(options),
      scenario_(MakeScenario(options.seed, options.tensors)),
      model_(MakeSimModel(scenario_, options.bug)),
      simulator_(options.verbose),
      network_(&simulator_, scenario_),
      oracle_(&simulator_, &network_, &model_, &disk_.files, "train"),
      random_(scenario_.seed * 17 + 3),
      next_incarnation_(1000),
      faults_left_(scenario_.faults) {}

Simulation::~Simulation() = default;

SimulationResult Simulation::Run() {
  simulator_.NoteText("scenario", Describe(scenario_));
  for (int i = 0; i < scenario_.num_ps; ++i) {
    simulator_.RunAfter(kLongestStart * random_.Fraction(), [this, i] {
      StartPs(i);
      if (scenario_.all_reduce) StartWorker(i);
    });
  }
  for (int i = 0; !scenario_.all_reduce && i < scenario_.num_workers; ++i) {
    simulator_.RunAfter(kLongestStart * random_.Fraction(),
                        [this, i] { StartWorker(i); });
  }
  NextFault();
  simulator_.RunAfter(kHealAfter, [this] {
    network_.Heal();
    faults_left_ = 0;
  });
  const absl::Time start = simulator_.Now();
  const auto failed = [this] { return !oracle_.violation().empty(); };
  simulator_.RunUntil([&] { return failed() || job_ended(); },
                      start + kMustEndBy);
  if (!failed() && !job_ended()) {
    if (TooFewAreLeft()) {
      simulator_.Note("too few replicas are left");
      return Result();
    }
    oracle_.Fail("the job does not end");
  }
  simulator_.RunUntil([&] { return failed() || EverybodyEnded(); },
                      simulator_.Now() + kLeave);
  if (!failed()) CheckEnd();
  return Result();
}

SimulationResult Simulation::Result() {
  SimulationResult result;
  result.violation = oracle_.violation();
  result.history = simulator_.history();
  result.parameters = oracle_.NewestParameters();
  result.virtual_time = simulator_.elapsed();
  result.faults = faults_;
  result.restores = oracle_.restores();
  result.saves = oracle_.saves();
  TakeDown();
  return result;
}

// ---- Processes ------------------------------------------------------------

void Simulation::StartPs(int task) {
  SimPs::Options options;
  options.simulator = &simulator_;
  options.network = &network_;
  options.oracle = &oracle_;
  options.task = task;
  options.incarnation = next_incarnation_++;
  options.num_workers = scenario_.num_workers;
  options.bug = options_.bug;
  options.on_exit = [this](SimPs* ps) { RestartPs(ps->task()); };
  simulator_.Note("ps starts", task);
  ps_.push_back(std::make_unique<SimPs>(options));
  ps_of_[task] = ps_.back().get();
  ps_.back()->Start();
}

void Simulation::StartWorker(int index) {
  SimWorker::Options options;
  options.simulator = &simulator_;
  options.network = &network_;
  options.oracle = &oracle_;
  options.disk = &disk_;
  options.model = &model_;
  options.index = index;
  options.incarnation = next_incarnation_++;
  options.bug = options_.bug;
  options.on_exit = [this](SimWorker* worker, int code) {
    OnExit(worker, code);
  };
  workers_.push_back(std::make_unique<SimWorker>(options));
  SimWorker* const newest = worker_of_[index];
  const bool is_second = newest != nullptr && newest->alive();
  if (!is_second) worker_of_[index] = workers_.back().get();
  workers_.back()->Start();
}

void Simulation::RestartSoon(std::function<void()> start) {
  simulator_.RunAfter(
      std::min(random_.About(scenario_.restart), kLongestRestart),
      [this, start = std::move(start)] {
        if (!job_ended()) start();
      });
}

void Simulation::RestartPs(int task) {
  RestartSoon([this, task] {
    StartPs(task);
    if (scenario_.all_reduce) StartWorker(task);
  });
}

// As worker/worker_process: a worker that ends too early takes its ps task
// along, which has the chief save before.
void Simulation::RestartWorker(int index) {
  if (!scenario_.all_reduce) {
    return RestartSoon([this, index] { StartWorker(index); });
  }
  if (ps_of_[index]->alive()) return ps_of_[index]->Terminate();
  RestartPs(index);
}

void Simulation::OnExit(SimWorker* worker, int exit_code) {
  exit_codes_[worker->incarnation()] = exit_code;
  if (exit_code == 128 + SIGTERM && worker->said_error()) {
    warned_.insert(worker->incarnation());
  }
  const int index = worker->index();
  const bool is_newest = worker_of_[index] == worker;
  if (!is_newest && exit_code == kExitBadConfig) return;  // a second chief
  if (exit_code == kExitDone && worker->is_chief()) {
    // From here on nobody could restore what a ps loses: README.md says more.
    faults_left_ = 0;
    // An interrupted chief, which said what may be missing, may have finished
    // before this one was started.
    if (!oracle_.interrupted()) oracle_.CheckDiskAtEnd();
  }
  if (exit_code == kExitDone) return;
  if (exit_code >= 128) return RestartWorker(index);
  oracle_.Fail(absl::StrCat("worker ", index, " exits with code ", exit_code));
}

// ---- What happens to the job ------------------------------------------------

void Simulation::NextFault() {
  simulator_.RunAfter(random_.About(scenario_.between_faults), [this] {
    if (faults_left_ == 0 || job_ended()) return;
    --faults_left_;
    ++faults_;
    DoFault();
    NextFault();
  });
}

void Simulation::DoFault() {
  const auto ps = static_cast<int>(random_.Between(0, scenario_.num_ps - 1));
  switch (random_.Between(0, 14)) {
    case 0:
    case 1:
    case 2:
      return KillPs(ps);
    case 3:
    case 4:
      return KillWorker(0);
    case 5:
      return KillWorker(
          static_cast<int>(random_.Between(0, scenario_.num_workers - 1)));
    case 6:
      return TerminateWorker(
          static_cast<int>(random_.Between(0, scenario_.num_workers - 1)));
    case 7:
      return StartSecondChief();
    case 8:
    case 9:
      return TerminatePs(ps);
    case 10:
    case 11:
      return StopSomething();
    case 12:
      return FillDisk();
    default:
      return ClogSomething();
  }
}

void Simulation::KillPs(int task) {
  SimPs* const ps = ps_of_[task];
  if (ps == nullptr || !ps->alive()) return;
  simulator_.Note("ps dies", task);
  ps->Die();
  // A machine that dies says nothing; the connections of a process break.
  if (random_.Happens(0.8)) {
    for (const auto& worker : workers_) worker->caller().OnPsDeath(task);
    for (const auto& other : ps_) other->caller().OnPsDeath(task);
  }
  if (scenario_.all_reduce) EndWorker(task);
  RestartPs(task);
}

// The process, and perhaps its machine.
void Simulation::EndWorker(int index) {
  SimWorker* const worker = worker_of_[index];
  worker->Die();
  if (worker->is_chief() && random_.Happens(scenario_.power_loss)) {
    simulator_.Note("power loss");
    disk_.files.CutPower();
  }
}

void Simulation::KillWorker(int index) {
  if (scenario_.all_reduce) return KillPs(index);
  SimWorker* const worker = worker_of_[index];
  if (worker == nullptr || !worker->alive()) return;
  EndWorker(index);
  RestartWorker(index);
}

void Simulation::TerminatePs(int task) {
  if (scenario_.all_reduce) return TerminateWorker(task);
  SimPs* const ps = ps_of_[task];
  if (ps != nullptr && ps->alive()) ps->Terminate();
}

// The chief's SIGTERM ends the job, so that it is rare.
void Simulation::TerminateWorker(int index) {
  SimWorker* const worker = worker_of_[index];
  if (worker == nullptr || !worker->alive()) return;
  if (index == 0 && !random_.Happens(kInterrupts)) return;
  if (index == 0) oracle_.ChiefInterrupted();
  worker->Terminate(SIGTERM);
}

// SIGSTOP, and SIGCONT after a while.
void Simulation::StopSomething() {
  const absl::Duration longest =
      random_.Happens(kVeryLongClogs) ? kVeryLongClog : kLongestClog;
  const absl::Time until = simulator_.Now() + longest * random_.Fraction();
  const bool is_ps = random_.Happens(0.5);
  const auto task = static_cast<int>(random_.Between(
      0, (is_ps ? scenario_.num_ps : scenario_.num_workers) - 1));
  simulator_.Note("stop", is_ps, task,
                  absl::ToInt64Milliseconds(until - simulator_.Now()));
  const bool is_both = scenario_.all_reduce;
  if ((is_ps || is_both) && ps_of_[task] != nullptr) {
    ps_of_[task]->process().Stop(until);
  }
  if ((!is_ps || is_both) && worker_of_[task] != nullptr) {
    worker_of_[task]->process().Stop(until);
  }
}

void Simulation::FillDisk() {
  disk_.full_until = simulator_.Now() + kLongestFullDisk * random_.Fraction();
  simulator_.Note("disk is full");
}

// A mistake of whoever starts the tasks: the first one is alive.
void Simulation::StartSecondChief() {
  // In all-reduce it does not get the port of its ps task.
  if (scenario_.all_reduce) return;
  SimWorker* const chief = worker_of_[0];
  if (chief == nullptr || !chief->alive()) return;
  if (disk_.lock_holder != chief->incarnation()) return;
  StartWorker(0);
}

void Simulation::ClogSomething() {
  const absl::Duration longest =
      random_.Happens(kVeryLongClogs) ? kVeryLongClog : kLongestClog;
  const absl::Time until = simulator_.Now() + longest * random_.Fraction();
  const auto ps = static_cast<int>(random_.Between(0, scenario_.num_ps - 1));
  const auto worker = static_cast<int>(
      kFirstWorker + random_.Between(0, scenario_.num_workers - 1));
  const int64_t what = random_.Between(0, 3);
  simulator_.Note("clog", what, ps, worker,
                  absl::ToInt64Milliseconds(until - simulator_.Now()));
  if (what == 0) return network_.ClogAll(ps, until);
  if (what == 1) return network_.ClogAll(worker, until);
  network_.Clog(ps, worker, until);
}

// ---- The end ----------------------------------------------------------------

bool Simulation::EverybodyEnded() const {
  return std::none_of(ps_.begin(), ps_.end(),
                      [](const auto& ps) { return ps->alive(); }) &&
         std::none_of(workers_.begin(), workers_.end(),
                      [](const auto& worker) { return worker->alive(); });
}

void Simulation::CheckEnd() {
  CheckTasksAtEnd();
  // A chief that was lost has not saved, and ends with 138 (OnExit checks those
  // that end with 0); one that was stopped by a signal may have warned that a
  // step is missing.
  for (const WorkerState& worker : oracle_.end()->workers()) {
    const uint64_t incarnation = worker.sender().incarnation();
    if (worker.sender().task().index() != 0 || !worker.finished()) continue;
    if (warned_.count(incarnation) > 0) continue;
    // The disk was full, and no other start of the chief came in time.
    if (ps_of_.at(0)->KeptModelOf(incarnation)) continue;
    oracle_.CheckDiskAtEnd();
  }
}

bool Simulation::TooFewAreLeft() const {
  if (!oracle_.interrupted() || scenario_.mode != Mode::kSync) return false;
  int left = 0;
  for (const auto& [index, worker] : worker_of_) {
    const auto code = exit_codes_.find(worker->incarnation());
    const bool has_ended =
        code != exit_codes_.end() && code->second == kExitDone;
    if (!has_ended) ++left;
  }
  return left < scenario_.min_replicas;
}

void Simulation::CheckTasksAtEnd() {
  const SimPs& first = *ps_of_.at(0);
  for (const auto& ps : ps_) {
    if (!ps->alive() || (ps->task() != 0 && first.WaitedFor(ps->task()))) {
      continue;
    }
    oracle_.Fail(absl::StrCat("ps task ", ps->task(), " does not end"));
  }
  // Who was not a live member at the end has nobody who would tell it (it
  // exits with 138 in the end); all others know.
  for (const WorkerState& state : oracle_.end()->workers()) {
    const uint64_t incarnation = state.sender().incarnation();
    if (!state.finished() || incarnation == 0) continue;
    const auto code = exit_codes_.find(incarnation);
    const SimWorker* const newest = worker_of_[state.sender().task().index()];
    if (newest->incarnation() != incarnation) continue;
    if (code != exit_codes_.end() &&
        (code->second == kExitDone || code->second == 128 + SIGTERM ||
         first.KeptModelOf(incarnation))) {
      continue;
    }
    // Killed on its last way out.
    if (code == exit_codes_.end() && !newest->alive()) continue;
    oracle_.Fail(absl::StrCat(TaskName(state.sender()), " has finished, but ",
                              code == exit_codes_.end()
                                  ? "does not end"
                                  : absl::StrCat("exits with ", code->second)));
  }
}

void Simulation::TakeDown() {
  for (const auto& ps : ps_) ps->Die();
  for (const auto& worker : workers_) worker->Die();
  simulator_.RunUntil(
      [this] {
        return std::all_of(workers_.begin(), workers_.end(),
                           [](const auto& worker) { return worker->gone(); });
      },
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
