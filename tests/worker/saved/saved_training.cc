#include "tests/worker/saved/saved_training.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

std::vector<std::string> Joined(std::vector<std::string> overrides,
                                const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

}  // namespace

void SavedTraining::SetUp() {
  dir_ = NewTrainDir("data");
  data_ = {"input.type=csv", absl::StrCat("input.dir=", dir_),
           "input.batch_size=4", "evaluation.batch_size=3"};
}

void SavedTraining::Write(const std::string& name, const std::string& content) {
  std::ofstream(absl::StrCat(dir_, "/", name)) << content;
}

int SavedTraining::TrainIn(const std::string& train_dir,
                           const std::string& training,
                           const std::vector<std::string>& more) {
  const auto options = MakeOptions(training, Joined(data_, more), train_dir);
  EXPECT_THAT(options, IsOk());
  const auto task = CreateTask(*options);
  EXPECT_THAT(task, IsOk());
  return task.ok() ? (*task)->Run() : -1;
}

SavedModel::Options SavedTraining::Model(const std::string& training,
                                         const std::vector<std::string>& more) {
  SavedModel::Options options;
  const auto worker = MakeOptions(training, Joined(data_, more), "");
  EXPECT_THAT(worker, IsOk());
  options.training = worker->training;
  options.device_choice = worker->device_choice;
  options.reporter = reporter();
  return options;
}

}  // namespace muster
