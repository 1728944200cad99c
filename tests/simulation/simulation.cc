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

// The network is whole from here on, and nobody dies any more.
constexpr absl::Duration kHealAfter = absl::Minutes(3);
// By then the job must have ended: some recoveries, each with a few deadlines
// (10 s), a transfer that gives up (20 s) and a lost worker (30 s).
constexpr absl::Duration kMustEndBy = absl::Minutes(8);
// What the tasks may take to leave when the job is done.
constexpr absl::Duration kLeave = absl::Minutes(2);

}  // namespace

Simulation::Simulation(const Options& options)
    : options_(options),
      scenario_(MakeScenario(options.seed)),
      model_(MakeSimModel(scenario_)),
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
    simulator_.RunAfter(kLongestStart * random_.Fraction(),
                        [this, i] { StartPs(i); });
  }
  for (int i = 0; i < scenario_.num_workers; ++i) {
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
  if (!failed() && !job_ended() && !IsForgotten()) {
    oracle_.Fail("the job does not end");
  }
  simulator_.RunUntil([&] { return failed() || EverybodyEnded(); },
                      simulator_.Now() + kLeave);
  if (!failed()) CheckEnd();
  SimulationResult result;
  result.violation = oracle_.violation();
  result.history = simulator_.history();
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
  simulator_.RunAfter(random_.About(scenario_.restart),
                      [this, start = std::move(start)] {
                        if (!job_ended()) start();
                      });
}

void Simulation::OnExit(SimWorker* worker, int exit_code) {
  exit_codes_[worker->incarnation()] = exit_code;
  const bool is_newest = worker_of_[worker->index()] == worker;
  if (!is_newest && exit_code == kExitBadConfig) return;  // a second chief
  // From here on nobody could restore what a ps loses: README.md says more.
  if (exit_code == kExitDone && worker->is_chief()) faults_left_ = 0;
  if (exit_code == kExitDone) return;
  if (exit_code >= 128) {
    const int index = worker->index();
    return RestartSoon([this, index] { StartWorker(index); });
  }
  oracle_.Fail(
      absl::StrCat("worker ", worker->index(), " exits with code ", exit_code));
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
  switch (random_.Between(0, 9)) {
    case 0:
    case 1:
    case 2:
      return KillPs(static_cast<int>(random_.Between(0, scenario_.num_ps - 1)));
    case 3:
    case 4:
      return KillWorker(0);
    case 5:
      return KillWorker(
          static_cast<int>(random_.Between(0, scenario_.num_workers - 1)));
    case 6:
      return TerminateWorker();
    case 7:
      return StartSecondChief();
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
  RestartSoon([this, task] { StartPs(task); });
}

void Simulation::KillWorker(int index) {
  SimWorker* const worker = worker_of_[index];
  if (worker == nullptr || !worker->alive()) return;
  worker->Die();
  if (worker->is_chief() && random_.Happens(scenario_.power_loss)) {
    simulator_.Note("power loss");
    disk_.files.CutPower();
  }
  RestartSoon([this, index] { StartWorker(index); });
}

// Not the chief: its SIGTERM ends the job.
void Simulation::TerminateWorker() {
  const int index =
      static_cast<int>(random_.Between(0, scenario_.num_workers - 1));
  SimWorker* const worker = worker_of_[index];
  if (index == 0 || worker == nullptr || !worker->alive()) return;
  worker->Terminate(SIGTERM);
}

// A mistake of whoever starts the tasks: the first one is alive.
void Simulation::StartSecondChief() {
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

// All is saved and the chief has left, but ps task 0 is a new start that has
// heard of nothing: README.md says more.
bool Simulation::IsForgotten() const {
  const auto code = exit_codes_.find(worker_of_.at(0)->incarnation());
  const SimPs* const ps = network_.ps(0);
  return code != exit_codes_.end() && code->second == kExitDone &&
         ps != nullptr && ps->coordinator().phase() == INITIAL;
}

bool Simulation::EverybodyEnded() const {
  return std::none_of(ps_.begin(), ps_.end(),
                      [](const auto& ps) { return ps->alive(); }) &&
         std::none_of(workers_.begin(), workers_.end(),
                      [](const auto& worker) { return worker->alive(); });
}

void Simulation::CheckEnd() {
  if (job_ended()) CheckTasksAtEnd();
  // A chief that was lost to the coordinator has not saved the end.
  bool is_saved = !job_ended();
  for (int i = 0; job_ended() && i < oracle_.end()->workers_size(); ++i) {
    const WorkerState& worker = oracle_.end()->workers(i);
    is_saved |= worker.sender().task().index() == 0 && worker.finished();
  }
  if (is_saved) oracle_.CheckDiskAtEnd();
}

void Simulation::CheckTasksAtEnd() {
  const bool calm = scenario_.faults == 0 && scenario_.lose == 0;
  for (const auto& ps : ps_) {
    // One whose connection was clogged or broke just when task 0 left waits
    // for another start of task 0, and ends with 138.
    if (ps->alive() && (calm || ps->task() == 0)) {
      oracle_.Fail(absl::StrCat("ps task ", ps->task(), " does not end"));
    }
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
        (code->second == kExitDone || code->second == 128 + SIGTERM)) {
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

SimulationResult Simulate(uint64_t seed, Bug bug) {
  Simulation::Options options;
  options.seed = seed;
  options.bug = bug;
  return Simulation(options).Run();
}

}  // namespace muster
