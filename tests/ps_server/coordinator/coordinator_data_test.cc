// Which data a worker may come with, and what becomes of who has others.
#include <string>

#include "common/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CoordinatorDataTest : public CoordinatorTest {
 protected:
  explicit CoordinatorDataTest(const CoordinatorOptions& options = Options())
      : CoordinatorTest(options) {}

  static RegisterRequest MakeRegister(const Sender& sender,
                                      const std::string& rows,
                                      const std::string& file = "a") {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_training_fingerprint(std::hash<std::string>()("a"));
    request.set_training_text("a");
    request.set_chief(sender.task().index() == 0);
    AddSection("rows", rows, &request);
    AddSection("files", file, &request);
    return request;
  }

  static void AddSection(const std::string& name, const std::string& text,
                         RegisterRequest* request) {
    DataSection* const section = request->add_data();
    section->set_name(name);
    section->set_text(text);
    section->set_digest(Fingerprint64(text));
  }

  // Confirms a takeover.
  absl::Status Come(RegisterRequest request) {
    auto reply = coordinator_.Register(request, now_);
    if (reply.ok() && reply->takeover() != 0) {
      request.set_takeover(reply->takeover());
      reply = coordinator_.Register(request, now_);
    }
    return reply.status();
  }
};

TEST_F(CoordinatorDataTest, AWorkerWithOtherDataIsNoMember) {
  ASSERT_THAT(Come(MakeRegister(chief_, "200")), IsOk());
  EXPECT_THAT(Come(MakeRegister(worker_, "150")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rows: '150' here, '200' at")));
  EXPECT_EQ(coordinator_.ActiveTasks().size(), 1u);
  EXPECT_THAT(Come(MakeRegister(worker_, "200")), IsOk());
}

// A training's replication follows from it.
TEST_F(CoordinatorDataTest, AnotherNumberOfWorkersIsToldBeforeTheTraining) {
  RegisterRequest request = MakeRegister(chief_, "200");
  AddSection("workers", "2", &request);
  ASSERT_THAT(Come(request), IsOk());
  request = MakeRegister(worker_, "200");
  AddSection("workers", "3", &request);
  request.set_training_fingerprint(5);
  EXPECT_THAT(Come(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("workers: '3' here, '2' at")));
}

// It is told when it says something, like one with another training.
TEST_F(CoordinatorDataTest, WhoCameBeforeAChiefWithOtherDataHasToRegister) {
  ASSERT_THAT(Come(MakeRegister(worker_, "150")), IsOk());
  ASSERT_THAT(Come(MakeRegister(chief_, "200")), IsOk());
  EXPECT_THAT(Watch(worker_, 0), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("register")));
  EXPECT_THAT(coordinator_.TakeLines(),
              Contains(HasSubstr("or other data, than /job:worker/task:0")));
}

TEST_F(CoordinatorDataTest, AChiefThatComesBackWithOtherDataEndsTheOthers) {
  ASSERT_THAT(Come(MakeRegister(chief_, "200")), IsOk());
  ASSERT_THAT(Come(MakeRegister(worker_, "200")), IsOk());
  ASSERT_THAT(Come(MakeRegister(MakeSender(0, 200), "250")), IsOk());
  EXPECT_THAT(Watch(worker_, 0), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("register")));
  EXPECT_THAT(Come(MakeRegister(worker_, "200")),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Come(MakeRegister(MakeSender(1, 201), "250")), IsOk());
}

TEST_F(CoordinatorDataTest, AQuestionIsComparedAndChangesNothing) {
  RegisterRequest question = MakeRegister(chief_, "150");
  question.set_asks_only(true);
  EXPECT_THAT(Come(question), IsOk());
  ASSERT_THAT(Come(MakeRegister(worker_, "200")), IsOk()) << "nothing stands";
  EXPECT_THAT(Come(question), IsOk());
  EXPECT_THAT(Watch(worker_, 0), IsOk());
  RegisterRequest other = MakeRegister(MakeSender(2, 102), "150");
  other.set_asks_only(true);
  EXPECT_THAT(Come(other), StatusIs(absl::StatusCode::kInvalidArgument));
}

// Its parameters mean the columns and classes that they were trained with.
TEST_F(CoordinatorDataTest, AChiefWithOtherColumnsDoesNotGoOnWithAHeldModel) {
  RegisterRequest request = MakeRegister(chief_, "200");
  AddSection("columns", "a\nb\n", &request);
  ASSERT_THAT(Come(request), IsOk());
  const auto begun = Begin(chief_);
  ASSERT_THAT(begun, IsOk());
  ASSERT_THAT(coordinator_.CommitEpoch(
                  MakeCommit(chief_, begun->model_epoch(), 100), now_),
              IsOk());
  request = MakeRegister(MakeSender(0, 200), "250");
  AddSection("columns", "b\na\n", &request);
  EXPECT_THAT(Come(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the ps tasks hold a model that was trained "
                                 "with other data: columns: line 1 is 'b'")));
  request = MakeRegister(MakeSender(0, 201), "250");
  AddSection("columns", "a\nb\n", &request);
  EXPECT_THAT(Come(request), IsOk()) << "more rows are fine";
}

TEST_F(CoordinatorDataTest, OtherFilesAreAWarning) {
  ASSERT_THAT(Come(MakeRegister(chief_, "200")), IsOk());
  ASSERT_THAT(Come(MakeRegister(worker_, "200", "b")), IsOk());
  EXPECT_THAT(coordinator_.TakeWarnings(),
              ElementsAre(HasSubstr("/job:worker/task:1 reads other files")));
  EXPECT_THAT(coordinator_.TakeWarnings(), IsEmpty());
}

TEST_F(CoordinatorDataTest, ATaskWithoutDataIsALine) {
  ASSERT_THAT(Come(MakeRegister(chief_, "200")), IsOk());
  ASSERT_THAT(Register(worker_), IsOk());
  EXPECT_THAT(coordinator_.TakeLines(),
              ElementsAre(HasSubstr("are not compared")));
}

class CoordinatorDataGoOnTest : public CoordinatorDataTest {
 protected:
  CoordinatorDataGoOnTest() : CoordinatorDataTest(MakeOptions()) {}

  static CoordinatorOptions MakeOptions() {
    CoordinatorOptions options = Options();
    options.may_go_on = true;
    return options;
  }

  void End() {
    const auto begun = Begin(chief_);
    ASSERT_THAT(begun, IsOk());
    ASSERT_THAT(coordinator_.CommitEpoch(
                    MakeCommit(chief_, begun->model_epoch(), 10), now_),
                IsOk());
    Finish(chief_, /*stop_job=*/true);
    ASSERT_EQ(coordinator_.phase(), DONE);
  }
};

TEST_F(CoordinatorDataGoOnTest, AJobThatGoesOnMayHaveNewRows) {
  ASSERT_THAT(Come(MakeRegister(chief_, "200")), IsOk());
  End();
  // The workers of the next may come before its chief.
  RegisterRequest request = MakeRegister(worker_, "250");
  EXPECT_THAT(Come(request), IsOk()) << "it is told that the job is done";
  request.set_goes_on(true);
  ASSERT_THAT(Come(request), IsOk());
  EXPECT_THAT(Come(MakeRegister(MakeSender(2, 102), "200")),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Come(MakeRegister(MakeSender(0, 200), "250")), IsOk());
}

}  // namespace
}  // namespace muster
