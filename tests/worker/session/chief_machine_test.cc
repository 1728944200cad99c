#include "worker/session/chief_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::ElementsAre;

HelloReply Shard(uint64_t incarnation, int64_t model_epoch) {
  HelloReply reply;
  reply.set_ps_incarnation(incarnation);
  reply.mutable_state()->set_model_epoch(model_epoch);
  return reply;
}

JobState Committed(int64_t model_epoch, std::vector<uint64_t> incarnations) {
  JobState state;
  state.set_phase(RUNNING);
  state.set_model_epoch(model_epoch);
  for (size_t i = 0; i < incarnations.size(); ++i) {
    (*state.mutable_ps_incarnations())[i] = incarnations[i];
  }
  return state;
}

TEST(ChiefMachineTest, CommittedEpochOnAllShardsIsUsable) {
  EXPECT_TRUE(EpochIsUsable(Committed(3, {7, 8}), {Shard(7, 3), Shard(8, 3)}));
}

TEST(ChiefMachineTest, UncommittedEpochIsNotUsable) {
  JobState state = Committed(3, {7});
  state.set_phase(INITIAL);
  EXPECT_FALSE(EpochIsUsable(state, {Shard(7, 3)}));
}

TEST(ChiefMachineTest, RestartedShardMakesTheEpochUnusable) {
  EXPECT_FALSE(EpochIsUsable(Committed(3, {7, 8}), {Shard(7, 3), Shard(9, 0)}));
}

TEST(ChiefMachineTest, HalfLoadedNewerEpochMakesTheOldOneUnusable) {
  EXPECT_FALSE(EpochIsUsable(Committed(3, {7}), {Shard(7, 4)}));
}

TEST(ChiefMachineTest, StartsAboveEveryEpochThatAnyoneHasSeen) {
  ChiefMachine chief;
  const SessionAction action =
      chief.Start(Committed(3, {7}), {Shard(7, 5), Shard(8, 2)}, 4);
  EXPECT_EQ(std::get<SendBeginEpoch>(action).seen_epoch, 5);
}

// Every ps was started anew before the first checkpoint.
TEST(ChiefMachineTest, UsesNoNumberOfItsOwnAgain) {
  ChiefMachine chief;
  EXPECT_EQ(std::get<SendBeginEpoch>(chief.Start(JobState(), {Shard(7, 0)}, 4))
                .seen_epoch,
            4)
      << "it was in epoch 4";
  BeginEpochReply begun;
  begun.set_model_epoch(5);
  chief.OnBegun(begun);
  chief.OnFailed();
  EXPECT_EQ(std::get<SendBeginEpoch>(chief.Start(JobState(), {Shard(8, 0)}, 4))
                .seen_epoch,
            5)
      << "it has begun epoch 5";
}

TEST(ChiefMachineTest, LoadsAndCommitsTheBegunEpochForTheGreetedShards) {
  ChiefMachine chief;
  chief.Start(JobState(), {Shard(7, 0), Shard(8, 0)}, 0);
  BeginEpochReply begun;
  begun.set_model_epoch(6);
  const auto load = std::get<LoadModel>(chief.OnBegun(begun));
  EXPECT_EQ(load.model_epoch, 6);
  EXPECT_THAT(load.ps_incarnations, ElementsAre(7, 8));
  LoadedModel model;
  model.global_step = 40;
  const auto commit = std::get<SendCommit>(chief.OnLoaded(model));
  EXPECT_EQ(commit.model_epoch, 6);
  EXPECT_EQ(commit.model.global_step, 40);
  EXPECT_THAT(commit.ps_incarnations, ElementsAre(7, 8));
  chief.OnCommitted();
  EXPECT_FALSE(chief.busy());
}

}  // namespace
}  // namespace muster
