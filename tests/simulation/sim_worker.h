#ifndef TESTS_SIMULATION_SIM_WORKER_H_
#define TESTS_SIMULATION_SIM_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/reporter.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/counting_steps.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/sim_caller.h"
#include "tests/simulation/sim_file_system.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/simulator.h"
#include "worker/checkpoint/model_loader.h"
#include "worker/checkpoint/model_saver.h"
#include "worker/client/parameter_client.h"
#include "worker/hook/checkpoint_saver.h"
#include "worker/session/round_pauser.h"
#include "worker/session/training_session.h"

namespace muster {

// One start of a worker (worker 0 is the chief): production's TrainingSession
// with its machines, ParameterClient, ModelLoader, ModelSaver and
// CheckpointSaver, put together as worker/worker_task does. Lives as long as
// the simulation; after Die it runs to its end without any effect.
class SimWorker {
 public:
  struct Options {
    Simulator* simulator = nullptr;
    SimNetwork* network = nullptr;
    Oracle* oracle = nullptr;
    SimDisk* disk = nullptr;
    const SimModel* model = nullptr;
    // Where its job's workers are in the network.
    Endpoint first_endpoint = kFirstWorker;
    int index = 0;
    uint64_t incarnation = 0;
    Bug bug = Bug::kNone;
    // It has ended by itself, with this code.
    std::function<void(SimWorker*, int exit_code)> on_exit;
  };

  explicit SimWorker(const Options& options);

  void Start();
  // kill -9.
  void Die();
  void Terminate(int signal);

  int index() const { return options_.index; }
  uint64_t incarnation() const { return options_.incarnation; }
  bool is_chief() const { return options_.index == 0; }
  // Runs, neither killed nor ended.
  bool alive() const { return alive_; }
  SimCaller& caller() { return caller_; }
  SimProcess& process() { return process_; }
  // It has said that something went wrong.
  bool said_error() const { return said_error_; }

 private:
  // The thread of the process.
  void Main();
  int Run();
  bool TakeLock();
  absl::Status Create();
  absl::Status CreateChiefParts();
  TrainingSession::Options SessionOptions() const;
  TrainingSession::Parts SessionParts();
  void Say(Reporter::Level level, absl::string_view text);

  const Options options_;
  const std::string name_;
  const Reporter reporter_{
      [this](Reporter::Level level, absl::string_view text) {
        Say(level, text);
      }};
  Sender sender_;
  SimProcess process_;
  SimCaller caller_;
  SimFileSystem file_system_;
  std::unique_ptr<ClockThread> thread_;
  bool alive_ = false;
  bool said_error_ = false;

  std::unique_ptr<Link> coordination_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<CountingSteps> steps_;
  std::unique_ptr<ModelLoader> loader_;
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<RoundPauser> rounds_;
  // The step of the newest checkpoint when this start began; -1: none.
  int64_t saved_step_ = -1;
  std::unique_ptr<ModelSaver> model_saver_;
  std::unique_ptr<CheckpointSaver> checkpoint_saver_;
  std::unique_ptr<TrainingSession> session_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_WORKER_H_
