#include "worker/training/any_workers.h"

#include <string>

#include "common/cluster/host_flags.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status Check(const std::string& workers, const std::string& text) {
  TrainingSpec training;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &training));
  return CheckSuitsAnyWorkers(ParseHostFlags("p0:1", workers).value(),
                              training);
}

TEST(CheckSuitsAnyWorkersTest, WhatDependsOnTheirNumber_IsRefusedByName) {
  struct Case {
    const char* training;
    const char* field;
    const char* advice;
  };
  const Case kCases[] = {
      {"input { global_batch_size: 64 }",
       "input.global_batch_size: ", "set input.batch_size"},
      {"replication { sync {} } optimizer { learning_rate_scaling: LINEAR }",
       "optimizer.learning_rate_scaling: ", "write the rate"},
      {"replication { sync { replicas_to_aggregate: 2 } } stop { epochs: 2 } "
       "optimizer { schedule { name: 'cosine' } }",
       "optimizer.schedule.decay_steps: ", "set it, or stop.steps"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(Check("any", c.training),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(c.field), HasSubstr(c.advice),
                               HasSubstr("list the workers"))));
    EXPECT_THAT(Check("w0:1,w1:1", c.training), IsOk());
  }
}

TEST(CheckSuitsAnyWorkersTest, WhatIsKnownWithoutTheirNumber_Suits) {
  for (const char* const training : {
           "replication { sync {} } stop { epochs: 2 }",
           "replication { sync {} } stop { steps: 9 } "
           "optimizer { schedule { name: 'cosine' } }",
           "replication { sync {} } stop { epochs: 2 } "
           "optimizer { schedule { name: 'cosine' decay_steps: 9 } }",
           "stop { epochs: 2 } optimizer { schedule { name: 'cosine' } "
           "learning_rate_scaling: LINEAR }",
           "replication { bounded_staleness { bound: 1 } } stop { epochs: 2 } "
           "optimizer { schedule { name: 'polynomial' } }",
       }) {
    EXPECT_THAT(Check("any", training), IsOk()) << training;
  }
}

}  // namespace
}  // namespace muster
