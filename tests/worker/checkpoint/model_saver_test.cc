// The cut between two rounds; tests/worker/task/standalone_test.cc saves and
// restores whole models.
#include "worker/checkpoint/model_saver.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/fake_parameter_link.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/session/round_coordination.h"

namespace muster {
namespace {

constexpr int64_t kRound = 8;

class ModelSaverTest : public ::testing::Test {
 protected:
  void SetUp() override { Create(/*rounds=*/true); }

  void Create(bool rounds) {
    ParameterClient::Options client;
    client.ps_names = {"/job:ps/task:0", "/job:ps/task:1"};
    client.clock = &clock_;
    std::vector<std::unique_ptr<ParameterLink>> links;
    links.push_back(std::make_unique<FakeParameterLink>(&shards_[0]));
    links.push_back(std::make_unique<FakeParameterLink>(&shards_[1]));
    client_ = std::make_unique<ParameterClient>(client, std::move(links));
    ASSERT_THAT(client_->SetModel({}, {}), IsOk());
    client_->SetEpoch(1, {11, 12});
    ModelSaver::Options options;
    options.clock = &clock_;
    options.client = client_.get();
    options.coordination = &coordination_;
    if (rounds) options.rounds = &rounds_;
    options.pipeline_depth = pipeline_depth_;
    options.reporter = lines_.reporter();
    options.rows = {/*num_examples=*/400, /*worker_rows=*/32};
    options.file_system = &files_;
    options.train_dir = "train";
    options.placed = &placed_;
    saver_ = std::make_unique<ModelSaver>(options);
    saver_->set_evaluations([this] { return evaluations_; });
    saver_->Enter(1, absl::ZeroDuration());
  }

  FakeClock clock_;
  FakeShard shards_[2] = {FakeShard{{}}, FakeShard{{}}};
  std::unique_ptr<ParameterClient> client_;
  RoundCoordination coordination_{kRound};
  RoundPauser rounds_{&clock_, &coordination_, Sender()};
  PlacedModel placed_;
  // Those of a run whose best model is of `step`.
  static EvaluationHistory WithBest(int64_t step) {
    EvaluationHistory history;
    history.mutable_kept()->set_metric("test_loss");
    history.mutable_kept()->set_best_step(step);
    return history;
  }
  // Of the only checkpoint, which is of the step before the round.
  CheckpointManifest Manifest(int64_t step = kRound - 1) {
    const auto manifest =
        ReadManifestFile(&files_, absl::StrCat("train/", CheckpointName(step)));
    EXPECT_THAT(manifest, IsOk());
    return *manifest;
  }

  int pipeline_depth_ = 1;
  ReportedLines lines_;
  FakeFileSystem files_{"train"};
  EvaluationHistory evaluations_;
  std::unique_ptr<ModelSaver> saver_;
};

TEST_F(ModelSaverTest, TheManifestHasWhatWasEvaluatedUntilTheCut) {
  evaluations_ = WithBest(3);
  const auto save = saver_->Begin();
  ASSERT_THAT(save, IsOk());
  evaluations_ = WithBest(5);
  ASSERT_THAT(save->write(), IsOk());
  EXPECT_EQ(Manifest().evaluations().kept().best_step(), 3);
}

TEST_F(ModelSaverTest, ABestModel_TakesThePlaceOfAnotherOfItsStep) {
  ASSERT_THAT(saver_->Begin()->write(), IsOk());
  clock_.Advance(absl::Seconds(9));
  const auto best = saver_->Begin();
  ASSERT_THAT(best, IsOk());
  ASSERT_THAT(best->write_best(WithBest(kRound - 1)), IsOk());
  EXPECT_EQ(Manifest().trained_s(), 9);
  EXPECT_EQ(Manifest().evaluations().kept().best_step(), kRound - 1);
}

TEST_F(ModelSaverTest, ManifestOfARound_HasItsLedger) {
  coordination_.ledger.set_front(96);
  coordination_.ledger.set_skipped(4);
  ASSERT_THAT(saver_->Begin()->write(), IsOk());
  const RowLedger ledger = Manifest().ledger();
  EXPECT_EQ(Manifest().format_version(), 7);
  EXPECT_EQ(ledger.front(), 96);
  EXPECT_EQ(ledger.skipped(), 4);
  EXPECT_EQ(ledger.kind(), "rows");
  EXPECT_EQ(ledger.epoch_rows(), 400);
}

// The cut's: what is reported while the shards are cut may be in none of them.
TEST_F(ModelSaverTest, ManifestOfRunningSteps_HasTheLedgerOfTheCut) {
  Create(/*rounds=*/false);
  coordination_.ledger.set_front(64);
  const auto save = saver_->Begin();
  ASSERT_THAT(save, IsOk());
  EXPECT_EQ(coordination_.cut_calls(),
            std::vector<std::string>({"BeginCut 1", "ConfirmCut 1"}));
  coordination_.ledger.set_front(96);
  ASSERT_THAT(save->write(), IsOk());
  EXPECT_EQ(Manifest(/*step=*/0).ledger().front(), 64);
}

TEST_F(ModelSaverTest, CutOfAnOldEpoch_FailsBeforeTheShardsAreCut) {
  Create(/*rounds=*/false);
  coordination_.begin_failure = absl::AbortedError("fenced: epoch 2");
  EXPECT_THAT(saver_->Begin(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(shards_[0].round(), 0);
}

TEST_F(ModelSaverTest, CutsThatLieFarApart_AreMadeAgain) {
  Create(/*rounds=*/false);
  coordination_.repeated_steps = {13, 2, 1};
  ASSERT_THAT(saver_->Begin(), IsOk());
  EXPECT_EQ(
      coordination_.cut_calls(),
      std::vector<std::string>({"BeginCut 1", "ConfirmCut 1", "BeginCut 1",
                                "ConfirmCut 1", "BeginCut 1", "ConfirmCut 1"}));
  EXPECT_THAT(lines_.lines(), ::testing::IsEmpty());
}

TEST_F(ModelSaverTest, CutsOfPipelinedSteps_MayLieAsFarApart) {
  pipeline_depth_ = 2;
  Create(/*rounds=*/false);
  coordination_.repeated_steps = {3, 2};
  ASSERT_THAT(saver_->Begin(), IsOk());
  EXPECT_EQ(coordination_.cut_calls().size(), 4);
}

TEST_F(ModelSaverTest, TheLastCut_HoldsTheSteps) {
  Create(/*rounds=*/false);
  coordination_.repeated_steps = {13, 13, 13, 13};
  ASSERT_THAT(saver_->Begin(), IsOk());
  const std::vector<std::string>& calls = coordination_.cut_calls();
  ASSERT_EQ(calls.size(), 10);
  EXPECT_EQ(calls[6], "BeginCut 1");
  EXPECT_EQ(calls[8], "BeginCut 1, holds");
  EXPECT_THAT(lines_.lines(), ::testing::IsEmpty());
}

TEST_F(ModelSaverTest, ALastCutThatLiesFarApart_IsSavedAndSaid) {
  Create(/*rounds=*/false);
  coordination_.repeated_steps = {13, 13, 13, 13, 4};
  ASSERT_THAT(saver_->Begin(), IsOk());
  EXPECT_EQ(coordination_.cut_calls().size(), 10);
  EXPECT_THAT(lines_.lines(),
              ::testing::ElementsAre(::testing::HasSubstr(
                  "4 steps of a worker lie between the cuts of two shards, "
                  "wanted at most 1")));
}

// Its values may be others, with as many steps.
TEST_F(ModelSaverTest, ALaterSaveOfTheBestsStep_LeavesTheBest) {
  evaluations_ = WithBest(kRound - 1);
  ASSERT_THAT(saver_->Begin()->write_best(evaluations_), IsOk());
  clock_.Advance(absl::Seconds(9));
  EXPECT_THAT(saver_->Begin()->write(),
              IsOkAndHolds(absl::StrCat("train/", CheckpointName(kRound - 1))));
  EXPECT_EQ(Manifest().trained_s(), 0);
}

TEST_F(ModelSaverTest, CutsEveryShardAtTheHeldRound) {
  const auto save = saver_->Begin();
  ASSERT_THAT(save, IsOk());
  EXPECT_EQ(save->global_step, kRound - 1);
  EXPECT_EQ(shards_[0].round(), kRound);
  EXPECT_EQ(shards_[1].round(), kRound);
  EXPECT_EQ(coordination_.holds, 1);
  EXPECT_FALSE(coordination_.held);
}

TEST_F(ModelSaverTest, TellsWhichStepIsSaved) {
  const auto save = saver_->Begin();
  ASSERT_THAT(save, IsOk());
  EXPECT_EQ(coordination_.saves_reported().size(), 0);
  ASSERT_THAT(save->write(), IsOk());
  ASSERT_EQ(coordination_.saves_reported().size(), 1);
  const ReportSaveRequest report = coordination_.saves_reported().front();
  EXPECT_EQ(report.global_step(), kRound - 1);
  EXPECT_EQ(report.model_epoch(), 1);
}

TEST_F(ModelSaverTest, ASaveThatFailsIsNotTold) {
  const auto save = saver_->Begin();
  ASSERT_THAT(save, IsOk());
  files_.FailFrom(1, absl::ResourceExhaustedError("full"));
  EXPECT_FALSE(save->write().ok());
  EXPECT_EQ(coordination_.saves_reported().size(), 0);
}

TEST_F(ModelSaverTest, ACutThatComesTooLateIsTriedAgain) {
  coordination_.after_hold = [this] {
    shards_[1].AdvanceToRound(kRound + 1);
    coordination_.set_round(kRound + 1);
  };
  const auto save = saver_->Begin();
  ASSERT_THAT(save, IsOk());
  EXPECT_EQ(save->global_step, kRound);
  EXPECT_EQ(shards_[0].round(), kRound + 1);
  EXPECT_EQ(coordination_.holds, 2);
  EXPECT_FALSE(coordination_.held);
}

TEST_F(ModelSaverTest, TheTimeTrainedIsThatOfTheModelThatWasLoadedAndWhatCame) {
  const auto pass = [this](int seconds) {
    clock_.Advance(absl::Seconds(seconds));
    return saver_->Trained(clock_.Now());
  };
  EXPECT_EQ(pass(5), absl::Seconds(5));
  saver_->Enter(1, std::nullopt);
  EXPECT_EQ(pass(2), absl::Seconds(7)) << "the same model goes on";
  saver_->Enter(2, absl::Seconds(3));
  EXPECT_EQ(pass(1), absl::Seconds(4)) << "a restore goes back";
}

TEST_F(ModelSaverTest, ReleasesTheRoundsWhenNoCutSucceeds) {
  shards_[1].AdvanceToRound(kRound + 1);
  EXPECT_THAT(saver_->Begin(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(coordination_.holds, coordination_.releases);
  EXPECT_FALSE(coordination_.held);
}

}  // namespace
}  // namespace muster
