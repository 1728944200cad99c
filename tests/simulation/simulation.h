#ifndef TESTS_SIMULATION_SIMULATION_H_
#define TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/bug.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_ps.h"
#include "tests/simulation/sim_worker.h"
#include "tests/simulation/simulator.h"

namespace muster {

struct SimulationResult {
  // The first broken promise; "" if all were kept.
  std::string violation;
  // Two runs with one history were the same.
  uint64_t history = 0;
  // The hash of the parameters in the newest checkpoint; 0 if there is none.
  uint64_t parameters = 0;
  absl::Duration virtual_time;
  int64_t faults = 0;
  int64_t restores = 0;
  int64_t saves = 0;
};

// A whole job in virtual time, or two on the same ps tasks, with everything
// that the seed says happens to them. Run once.
class Simulation {
 public:
  struct Options {
    uint64_t seed = 1;
    Tensors tensors = Tensors::kWhole;
    Bug bug = Bug::kNone;
    // Print the history to stderr.
    bool verbose = false;
  };

  explicit Simulation(const Options& options);
  ~Simulation();

  SimulationResult Run();

 private:
  // One job: its model, its machine, its promises and its workers.
  struct Job {
    Job(Simulation* simulation, const Scenario& job_scenario);

    bool ended() const { return oracle.end().has_value(); }

    const Scenario scenario;
    const SimModel model;
    SimDisk disk;
    Oracle oracle;
    Endpoint first_endpoint = kFirstWorker;
    // The newest of each task.
    std::map<int, SimWorker*> worker_of;
    std::vector<SimWorker*> workers;
  };

  void StartEverybody();
  void StartPs(int task);
  void StartWorker(Job& job, int index);
  // When the tasks start, or, of a worker that comes late, when faults happen.
  absl::Duration StartOf(const Job& job, int index);
  void OnExit(Job& job, SimWorker* worker, int exit_code);
  void RestartSoon(const std::function<bool()>& is_over,
                   std::function<void()> start);
  // In all-reduce both start the other half of the process, too.
  void RestartPs(int task);
  void RestartWorker(Job& job, int index);

  // ---- What happens to the jobs ------------------------------------------
  void NextFault();
  void DoFault();
  void KillPs(int task);
  // A worker leaves its job, which the ps tasks outlive: a new start of ps task
  // 0 is to be told.
  void OnFinish();
  void TerminatePs(int task);
  void StopSomething(Job& job);
  void FillDisk(Job& job);
  void KillWorker(Job& job, int index);
  void EndWorker(Job& job, int index);
  void TerminateWorker(Job& job, int index);
  void StartSecondChief(Job& job);
  // The one that something happens to.
  Job& AnyJob();
  int AnyWorker(const Job& job);
  // The memory of the ps tasks is still wanted by a job, of which nobody could
  // restore it: its end is known, but not to all of its workers.
  bool IsAnyJobLeaving() const;
  // It exited with 0.
  bool IsChiefDone(const Job& job) const;
  void ClogSomething(Job& job);

  // ---- The end -------------------------------------------------------------
  bool serves_many() const { return jobs_.size() > 1; }
  bool AllEnded() const;
  // The first one of a job; "" for none.
  std::string Violation() const;
  SimulationResult Result();
  bool EverybodyEnded() const;
  // A job that was interrupted goes on, since the chief that was started again
  // could not attach, and waits without a limit for min_replicas: workers have
  // ended with the interrupted one.
  bool TooFewAreLeft(const Job& job) const;
  // Each of the jobs that have not ended has too few.
  bool DoOthersLackWorkers();
  void CheckPsAtEnd();
  void CheckWorkersAtEnd(Job& job);
  void CheckEnd(Job& job);
  void TakeDown();

  static constexpr int kMostKillsAtFinish = 3;

  const Options options_;
  const std::vector<Scenario> scenarios_;
  // Shared by the jobs.
  const Scenario& scenario_ = scenarios_.front();
  Simulator simulator_;
  SimNetwork network_;
  std::vector<std::unique_ptr<Job>> jobs_;
  Random random_;
  uint64_t next_incarnation_;
  int faults_left_;
  int kills_at_finish_left_ = kMostKillsAtFinish;
  int64_t faults_ = 0;

  // Every process there ever was, the newest of each task last.
  std::vector<std::unique_ptr<SimPs>> ps_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  // The newest of each task.
  std::map<int, SimPs*> ps_of_;
  std::map<uint64_t, int> exit_codes_;  // by incarnation
  // By incarnation: it exited after a signal and an error that it said.
  std::set<uint64_t> warned_;
  // The same: it exited when the job had ended without its last save.
  std::set<uint64_t> left_unsaved_;
};

// Runs one seed. A thrifty way to say it.
SimulationResult Simulate(uint64_t seed, Bug bug = Bug::kNone,
                          Tensors tensors = Tensors::kWhole);

}  // namespace muster

#endif  // TESTS_SIMULATION_SIMULATION_H_
