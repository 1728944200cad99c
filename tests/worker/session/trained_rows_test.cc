#include "worker/session/trained_rows.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// Ended by its epochs, of 60000 examples each.
JobState Ended(double epochs, int64_t done) {
  JobState job;
  job.set_stop_reason("epochs");
  job.mutable_stop()->set_epochs(epochs);
  job.mutable_rows()->set_epoch_rows(60000);
  job.mutable_rows()->set_done(done);
  job.set_examples(done);
  return job;
}

TEST(TrainedRowsTest, WholeEpochs_AreEachRowSoManyTimes) {
  EXPECT_EQ(DescribeTrainedRows(Ended(2, 120000)),
            "each of 60000 examples was trained on 2 times");
  EXPECT_EQ(DescribeTrainedRows(Ended(1, 60000)),
            "each of 60000 examples was trained on once");
}

TEST(TrainedRowsTest, LessThanAStep_IsLeft) {
  EXPECT_EQ(DescribeTrainedRows(Ended(2, 119904)),
            "each of 60000 examples was trained on 2 times, but for 96 of the "
            "last epoch, less than a step");
  EXPECT_EQ(RowsLeft(Ended(2, 119904)), 96);
}

TEST(TrainedRowsTest, FractionsOfEpochs_AreSaidInRows) {
  EXPECT_EQ(DescribeTrainedRows(Ended(0.1, 6000)),
            "6000 of 60000 examples were trained on once (0.1 epochs)");
  EXPECT_EQ(DescribeTrainedRows(Ended(2.5, 149968)),
            "each of 60000 examples was trained on 2 times, and 30000 of them "
            "once more (2.5 epochs), but for 32 of the last epoch, less than a "
            "step");
}

TEST(TrainedRowsTest, RepeatedAndSkippedRows_AreNamed) {
  JobState job = Ended(2, 119904);
  job.mutable_rows()->set_repeated(64);
  job.mutable_rows()->set_skipped(32);
  EXPECT_EQ(DescribeTrainedRows(job),
            "each of 60000 examples was trained on 2 times, but for 96 of the "
            "last epoch, less than a step; at most 64 of them once more, in "
            "steps of workers or ps tasks that were lost; 32 not, in steps "
            "that were passed over");
}

TEST(TrainedRowsTest, GoodRowsForBadOnes_AreSaid) {
  EXPECT_EQ(DescribeTrainedRows(Ended(1, 60000), /*skips_bad_records=*/true),
            "each of 60000 examples was trained on once; a good one in the "
            "place of each bad record");
}

TEST(TrainedRowsTest, RowsOfAnotherDataSetBefore_AreNotClaimed) {
  JobState job = Ended(6, 360000);
  job.mutable_rows()->set_known_from(240000);
  EXPECT_EQ(DescribeTrainedRows(job),
            "each of 60000 examples was trained on 2 times from epoch 4 on "
            "(counted from 0; before it the data set had another size, or an "
            "older version dealt its rows)");
  job.mutable_rows()->set_known_from(300001);
  EXPECT_EQ(DescribeTrainedRows(job),
            "360000 examples were trained on, 6 epochs of 60000");
}

TEST(TrainedRowsTest, EpochWithoutAStep_IsNotClaimed) {
  EXPECT_EQ(DescribeTrainedRows(Ended(2, 40000)),
            "40000 examples were trained on, 0.6667 epochs of 60000");
}

TEST(TrainedRowsTest, OtherEnd_ClaimsNoEpochs) {
  JobState job = Ended(2, 15000);
  job.set_stop_reason("interrupted");
  EXPECT_EQ(DescribeTrainedRows(job),
            "15000 examples were trained on, 0.25 epochs of 60000");
  EXPECT_EQ(RowsLeft(job), 105000);
  EXPECT_EQ(DescribeTrainedRows(Ended(1, 180000)),
            "180000 examples were trained on, 3 epochs of 60000")
      << "it wants less than it has done";
}

TEST(TrainedRowsTest, WithoutEpochs_NothingIsSaid) {
  EXPECT_EQ(DescribeTrainedRows(Ended(0, 60000)), "");
  EXPECT_EQ(RowsLeft(Ended(0, 60000)), std::nullopt);
  JobState job = Ended(2, 60000);
  job.clear_rows();
  EXPECT_EQ(DescribeTrainedRows(job), "");
}

}  // namespace
}  // namespace muster
