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

// A whole job in virtual time, with everything that the seed says happens to
// it. Run once.
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
  void StartPs(int task);
  void StartWorker(int index);
  void OnExit(SimWorker* worker, int exit_code);
  void RestartSoon(std::function<void()> start);
  // In all-reduce both start the other half of the process, too.
  void RestartPs(int task);
  void RestartWorker(int index);

  // ---- What happens to the job -------------------------------------------
  void NextFault();
  void DoFault();
  void KillPs(int task);
  void TerminatePs(int task);
  void StopSomething();
  void FillDisk();
  void KillWorker(int index);
  void EndWorker(int index);
  void TerminateWorker(int index);
  void StartSecondChief();
  void ClogSomething();

  // ---- The end -------------------------------------------------------------
  bool job_ended() const { return oracle_.end().has_value(); }
  SimulationResult Result();
  bool EverybodyEnded() const;
  // A job that was interrupted goes on, since the chief that was started again
  // could not attach, and waits without a limit for min_replicas: workers have
  // ended with the interrupted one.
  bool TooFewAreLeft() const;
  void CheckTasksAtEnd();
  void CheckEnd();
  void TakeDown();

  const Options options_;
  const Scenario scenario_;
  const SimModel model_;
  Simulator simulator_;
  SimNetwork network_;
  SimDisk disk_;
  Oracle oracle_;
  Random random_;
  uint64_t next_incarnation_;
  int faults_left_;
  int64_t faults_ = 0;

  // Every process there ever was, the newest of each task last.
  std::vector<std::unique_ptr<SimPs>> ps_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  // The newest, by task.
  std::map<int, SimPs*> ps_of_;
  std::map<int, SimWorker*> worker_of_;
  std::map<uint64_t, int> exit_codes_;  // by incarnation
  // By incarnation: it exited after a signal and an error that it said.
  std::set<uint64_t> warned_;
};

// Runs one seed. A thrifty way to say it.
SimulationResult Simulate(uint64_t seed, Bug bug = Bug::kNone,
                          Tensors tensors = Tensors::kWhole);

}  // namespace muster

#endif  // TESTS_SIMULATION_SIMULATION_H_
