#include "ps_server/coordinator/awaited_workers.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

JobState State(JobPhase phase) {
  JobState state;
  state.set_phase(phase);
  return state;
}

WorkerState* Add(JobState* state, int index) {
  WorkerState* const worker = state->add_workers();
  worker->mutable_sender()->mutable_task()->set_job("worker");
  worker->mutable_sender()->mutable_task()->set_index(index);
  worker->mutable_sender()->set_incarnation(100 + index);
  return worker;
}

const std::vector<TaskKey> kTwo = {{"worker", 0}, {"worker", 1}};

std::string Describe(const JobState& state, bool has_model = true) {
  return DescribeAwaitedWorkers(kTwo, state, has_model);
}

TEST(AwaitedWorkersTest, TrainingTasksAreWorkersAndChiefs) {
  ClusterDef cluster;
  for (const char* const name : {"ps", "worker", "chief", "evaluator"}) {
    JobDef* const job = cluster.add_job();
    job->set_name(name);
    (*job->mutable_tasks())[0] = "a:1";
  }
  EXPECT_EQ(TrainingTasks(cluster),
            (std::vector<TaskKey>{{"chief", 0}, {"worker", 0}}));
}

TEST(AwaitedWorkersTest, NamesThoseThatHaveNotCome) {
  JobState state = State(INITIAL);
  EXPECT_EQ(Describe(state), "/job:worker/task:0, /job:worker/task:1 to come");
  Add(&state, 1);
  EXPECT_EQ(Describe(state), "/job:worker/task:0 to come");
}

TEST(AwaitedWorkersTest, NamesTheChiefThatHasCome) {
  JobState state = State(INITIAL);
  Add(&state, 0);
  EXPECT_EQ(Describe(state),
            "/job:worker/task:0 to initialize or restore the model");
}

TEST(AwaitedWorkersTest, AClusterWithoutWorkersStillWaitsForAChief) {
  JobState state = State(INITIAL);
  EXPECT_EQ(DescribeAwaitedWorkers({}, state, false),
            "a chief, which is started with --task_index=0, to come and to "
            "initialize or restore the model");
  *state.mutable_chief() = Add(&state, 3)->sender();
  EXPECT_EQ(DescribeAwaitedWorkers({}, state, false),
            "/job:worker/task:3 to initialize or restore the model");
}

TEST(AwaitedWorkersTest, ARunningJobWaitsForNobody) {
  JobState state = State(RUNNING);
  Add(&state, 0);
  Add(&state, 1)->set_lost(true);
  EXPECT_EQ(Describe(state), "");
}

TEST(AwaitedWorkersTest, AShardThatHasLostTheModelWaitsForTheChief) {
  JobState state = State(RUNNING);
  WorkerState* const chief = Add(&state, 0);
  Add(&state, 1);
  EXPECT_EQ(Describe(state, /*has_model=*/false),
            "/job:worker/task:0 to initialize or restore the model");
  chief->set_lost(true);
  EXPECT_EQ(Describe(state, /*has_model=*/false), "/job:worker/task:0 to come");
}

TEST(AwaitedWorkersTest, AJobWithoutAnybodyWaitsForAllToComeBack) {
  JobState state = State(RUNNING);
  Add(&state, 0)->set_lost(true);
  Add(&state, 1)->set_finished(true);
  EXPECT_EQ(Describe(state),
            "/job:worker/task:0, /job:worker/task:1 to come back");
}

TEST(AwaitedWorkersTest, TheEndWaitsForWhoHasNotFinishedOrNotSaved) {
  JobState state = State(STOPPING);
  WorkerState* const chief = Add(&state, 0);
  Add(&state, 1)->set_finished(true);
  EXPECT_EQ(Describe(state), "/job:worker/task:0 to finish");
  chief->set_finished(true);
  EXPECT_EQ(Describe(state), "");
  chief->set_awaited(true);
  EXPECT_EQ(Describe(state),
            "/job:worker/task:0 to come back and save the model");
  state.set_phase(DONE);
  EXPECT_EQ(Describe(state), "");
}

TEST(AwaitedWorkersTest, NamesAsManyAsALineTakes) {
  JobState state = State(STOPPING);
  for (int i = 0; i < 18; ++i) Add(&state, i);
  const std::string text = Describe(state);
  EXPECT_NE(text.find("/job:worker/task:15 and 2 more to finish"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace muster
