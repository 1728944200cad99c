#include "worker/executor/step_schedule.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A plan with one loss and two parameters, whose instructions only touch
// buffers.
class StepScheduleTest : public testing::Test {
 protected:
  StepScheduleTest() {
    plan_.loss_buffer = AddBuffer(BufferSpace::kArena, 0);
    for (int i = 0; i < kParameters; ++i) {
      values_.push_back(AddBuffer(BufferSpace::kParameter, i));
      gradients_.push_back(AddBuffer(BufferSpace::kGradient, i));
    }
  }
  int AddBuffer(BufferSpace space, int index) {
    PlanBuffer buffer;
    buffer.space = space;
    buffer.index = index;
    plan_.buffers.push_back(buffer);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  void AddInstruction(const std::vector<int>& buffers) {
    Instruction instruction;
    for (const int buffer : buffers) {
      instruction.operands.push_back({Operand::kSrc, 0, buffer});
    }
    plan_.instructions.push_back(std::move(instruction));
  }
  StepSchedule Schedule() { return ScheduleStep(plan_, kParameters); }

  static constexpr int kParameters = 2;
  ExecutionPlan plan_;
  std::vector<int> values_;
  std::vector<int> gradients_;
};

TEST_F(StepScheduleTest, FindsTheFirstUseOfEachParameter) {
  AddInstruction({values_[1]});
  AddInstruction({values_[0], values_[1]});
  AddInstruction({values_[0]});
  EXPECT_THAT(Schedule().first_used_by,
              ElementsAre(ElementsAre(1), ElementsAre(0), IsEmpty()));
}

TEST_F(StepScheduleTest, TheLossIsMadeWhereItIsFirstWritten) {
  AddInstruction({values_[0]});
  AddInstruction({plan_.loss_buffer});
  AddInstruction({values_[0], plan_.loss_buffer, gradients_[0]});
  EXPECT_EQ(Schedule().loss_instruction, 1);
}

TEST_F(StepScheduleTest, ALossThatIsCopiedIsThereAfterItsCopy) {
  const int loss = AddBuffer(BufferSpace::kArena, 0);
  plan_.forward_loss_buffer = AddBuffer(BufferSpace::kArena, 0);
  AddInstruction({values_[0]});
  AddInstruction({loss});
  AddInstruction({loss, plan_.forward_loss_buffer});
  AddInstruction({loss, plan_.loss_buffer});
  EXPECT_EQ(Schedule().loss_instruction, 1);
  EXPECT_EQ(Schedule().loss_there_after, 2);
}

TEST_F(StepScheduleTest, AGradientIsFinalAfterItsPenalty) {
  AddInstruction({plan_.loss_buffer});
  AddInstruction({gradients_[0]});
  AddInstruction({values_[0], plan_.loss_buffer, gradients_[0]});
  AddInstruction({gradients_[1]});
  EXPECT_THAT(
      Schedule().final_after,
      ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0), ElementsAre(1)));
}

TEST_F(StepScheduleTest, AGradientIsFinalWhenItsParameterIsReadNoMore) {
  AddInstruction({gradients_[0]});
  AddInstruction({values_[0]});
  EXPECT_THAT(Schedule().final_after, ElementsAre(IsEmpty(), ElementsAre(0)));
}

TEST_F(StepScheduleTest, SharedAveragesAreNamedOnce) {
  for (const int parameter : {1, 0, 1}) {
    MovingAverage average;
    average.parameter = parameter;
    plan_.moving_averages.push_back(average);
  }
  EXPECT_THAT(Schedule().averaged_parameters, ElementsAre(1, 0));
}

}  // namespace
}  // namespace muster
