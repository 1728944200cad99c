#include "tests/worker/task/local_training.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/base/status_macros.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/shard_server.h"
#include "worker/training/training_spec.h"

namespace muster {

std::string LocalTraining::NewTrainDir(const std::string& name) {
  std::string path = testing::TempDir() + "/" + name + "XXXXXX";
  return mkdtemp(path.data());
}

std::string LocalTraining::ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

absl::StatusOr<JsonValue> LocalTraining::ReadResult(
    const std::string& train_dir) {
  return ParseJson(ReadAll(train_dir + "/result.json"));
}

absl::StatusOr<WorkerOptions> LocalTraining::MakeOptions(
    const std::string& training, const std::vector<std::string>& overrides,
    const std::string& train_dir) {
  WorkerOptions options;
  ASSIGN_OR_RETURN(options.training,
                   ParseTrainingSpec(training, "test", overrides));
  options.self.set_job("worker");
  options.train_dir = train_dir;
  options.device_choice.device = "ref";
  options.clock = &clock_;
  options.start_time = clock_.Now();
  options.reporter = lines_.reporter();
  return options;
}

absl::StatusOr<std::unique_ptr<WorkerTask>> LocalTraining::CreateTask(
    const WorkerOptions& options) {
  ShardServer::Options shard;
  shard.shard.incarnation = ++incarnation_;
  shard.clock = &clock_;
  CoordinationServer::Options coordination;
  coordination.clock = &clock_;
  WorkerLinks links;
  links.shards.push_back(std::make_unique<ShardServer>(shard));
  links.coordination = std::make_unique<CoordinationServer>(coordination);
  return WorkerTask::Create(options, std::move(links));
}

}  // namespace muster
