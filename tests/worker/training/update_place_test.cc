#include "worker/training/update_place.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class UpdatePlaceTest : public testing::Test {
 protected:
  UpdatePlaceTest() {
    training_.mutable_replication()->mutable_async();
    site_.is_standalone = true;
    site_.has_device = true;
    site_.tensors = tensors_;
  }

  void ExpectWhy(const std::string& why) {
    EXPECT_THAT(WhyShardUpdates(training_, site_), HasSubstr(why));
    EXPECT_NE(WhyShardUpdates(training_, site_), "");
  }

  static std::vector<TensorDef> Tensors() {
    std::vector<TensorDef> tensors(2);
    tensors[0].set_name("logits/weights");
    tensors[1].set_name("bn/mean");
    return tensors;
  }

  std::vector<TensorDef> tensors_ = Tensors();
  TrainingSpec training_;
  UpdateSite site_;
};

TEST_F(UpdatePlaceTest, NothingSpeaksAgainstAPlainTraining) {
  EXPECT_EQ(WhyShardUpdates(training_, site_), "");
}

TEST_F(UpdatePlaceTest, NamesWhatTheSiteLacks) {
  site_.has_device = false;
  ExpectWhy("no memory of its own");
  site_.is_standalone = false;
  ExpectWhy("on ps tasks");
}

TEST_F(UpdatePlaceTest, NamesWhatTheStepIsMadeOf) {
  site_.is_divided = true;
  ExpectWhy("the model is divided");
  site_.is_divided = false;
  site_.shape.accumulate_batches = 2;
  ExpectWhy("gradient.accumulate_batches");
  site_.shape.towers = 2;
  ExpectWhy("several towers");
}

TEST_F(UpdatePlaceTest, NamesTheReplication) {
  training_.mutable_replication()->mutable_async()->set_pipeline_depth(2);
  ExpectWhy("pipeline_depth");
  training_.mutable_replication()->mutable_sync();
  ExpectWhy("replication is sync");
}

TEST_F(UpdatePlaceTest, NamesAMovingAverage) {
  tensors_[1].set_kind(STATE);
  ExpectWhy("'bn/mean' is a moving average");
}

TEST_F(UpdatePlaceTest, NamesAFrozenParameter) {
  tensors_[1].set_kind(FROZEN);
  ExpectWhy("'bn/mean' is frozen");
}

TEST_F(UpdatePlaceTest, NamesWhatChangesGradientsAndValues) {
  training_.mutable_pull()->set_codec("bf16");
  ExpectWhy("pull.codec");
  training_.mutable_gradient()->set_codec("bf16");
  ExpectWhy("gradient.codec");
  training_.mutable_gradient()->mutable_clip()->set_by_norm(1);
  ExpectWhy("gradient.clip");
}

}  // namespace
}  // namespace muster
