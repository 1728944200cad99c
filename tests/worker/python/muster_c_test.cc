#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/python/muster.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Nobody listens there.
constexpr char kSpec[] =
    "ps_hosts: 'localhost:1' worker_hosts: 'any' task_index: '0' "
    "tensor { name: 'w' shape: 2 } tensor { name: 'b' shape: 1 } "
    "training { optimizer { name: 'sgd' attr { name: 'learning_rate' f: 1 } } "
    "stop { steps: 2 } } ";

class MusterCTest : public ::testing::Test {
 protected:
  muster_job* Start(const std::string& spec = kSpec) {
    return muster_start(spec.c_str(), values_, &error_);
  }

  float w_[2] = {};
  float b_[1] = {};
  float* values_[2] = {w_, b_};
  int error_ = -1;
};

TEST_F(MusterCTest, VersionAndInterface_AreThoseOfTheHeader) {
  EXPECT_STREQ(muster_version(), "0.1.0");
  EXPECT_EQ(muster_abi(), MUSTER_ABI);
}

TEST_F(MusterCTest, ResolvedTask_IsTheSpecs) {
  muster_task task;
  ASSERT_EQ(muster_resolve(kSpec, &task), MUSTER_OK) << muster_error();
  EXPECT_STREQ(task.job, "worker");
  EXPECT_EQ(task.index, 0);
  EXPECT_EQ(task.is_chief, 1);
  EXPECT_EQ(task.num_ps, 1);
  EXPECT_EQ(task.num_workers, 0);
  ASSERT_EQ(muster_resolve("ps_hosts: 'localhost:1' task_index: '1' "
                           "worker_hosts: 'localhost:2,localhost:3'",
                           &task),
            MUSTER_OK)
      << muster_error();
  EXPECT_EQ(task.is_chief, 0);
  EXPECT_EQ(task.num_workers, 2);
}

TEST(MusterReaderTest, APsThatIsAway_IsWaitedForByName) {
  int error = -1;
  muster_reader* const reader = muster_read_open(
      "ps_hosts: 'localhost:1' max_wait_seconds: 0.01", &error);
  ASSERT_NE(reader, nullptr) << muster_error();
  const muster_tensor* tensors = nullptr;
  int count = 0;
  int kind = MUSTER_NOT_YET;
  while (kind == MUSTER_NOT_YET) {
    kind = muster_read_tensors(reader, 0, &tensors, &count);
  }
  EXPECT_EQ(kind, MUSTER_ERROR_UNAVAILABLE);
  EXPECT_THAT(muster_error(), HasSubstr("gave up after waiting 10ms"));
  EXPECT_THAT(muster_error(), HasSubstr("/job:ps/task:0 at localhost:1"));
  float* values[] = {nullptr};
  EXPECT_EQ(muster_read_values(reader, 0, values), MUSTER_ERROR_CONFIG);
  EXPECT_THAT(muster_error(), HasSubstr("before muster_read_tensors"));
  EXPECT_EQ(muster_read_close(reader), MUSTER_OK);
}

TEST(MusterReaderTest, WhatCannotBe_IsAnErrorWithItsKind) {
  const struct {
    const char* spec;
    int error;
    const char* words;
  } kCases[] = {
      {nullptr, MUSTER_ERROR_CONFIG, "spec is NULL"},
      {"", MUSTER_ERROR_CONFIG, "give ps_hosts or cluster"},
      {"ps_hosts: 'localhost:1' train_dir: 'x'", MUSTER_ERROR_CONFIG,
       "train_dir"},
      {"ps_hosts: '192.0.2.1:1'", MUSTER_ERROR_SECURITY, "192.0.2.1"},
      {"ps_hosts: 'localhost:1' certs_dir: '/none'", MUSTER_ERROR_CONFIG,
       "/none"},
  };
  for (const auto& each : kCases) {
    int error = -1;
    EXPECT_EQ(muster_read_open(each.spec, &error), nullptr);
    EXPECT_EQ(error, each.error) << muster_error();
    EXPECT_THAT(muster_error(), HasSubstr(each.words));
  }
  EXPECT_EQ(muster_read_close(nullptr), MUSTER_ERROR_CONFIG);
}

TEST_F(MusterCTest, Null_IsAConfigurationError) {
  muster_task task;
  muster_step step;
  EXPECT_EQ(muster_resolve(nullptr, &task), MUSTER_ERROR_CONFIG);
  EXPECT_STREQ(muster_error(), "spec is NULL");
  EXPECT_EQ(muster_resolve(kSpec, nullptr), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_start(kSpec, nullptr, nullptr), nullptr);
  EXPECT_STREQ(muster_error(), "values is NULL");
  float* values[] = {w_, nullptr};
  EXPECT_EQ(muster_start(kSpec, values, &error_), nullptr);
  EXPECT_EQ(error_, MUSTER_ERROR_CONFIG);
  EXPECT_STREQ(muster_error(), "values[1] is NULL");
  EXPECT_EQ(muster_await(nullptr, 0, &step), MUSTER_OVER);
  EXPECT_EQ(muster_await(nullptr, 0, nullptr), MUSTER_OVER);
  EXPECT_EQ(muster_rows(nullptr, 0, nullptr, 0, nullptr), -1);
  EXPECT_EQ(muster_push(nullptr, nullptr, nullptr), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_push_tensor(nullptr, 0, w_, nullptr), MUSTER_ERROR_CONFIG);
  const int64_t id = 1;
  EXPECT_EQ(muster_pull_rows(nullptr, 0, &id, 1, w_, 0), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_push_rows(nullptr, 0, &id, 1, w_), MUSTER_ERROR_CONFIG);
  EXPECT_STREQ(muster_error(), "job is NULL");
  EXPECT_EQ(muster_first_rows(nullptr, &id, 1, w_), MUSTER_ERROR_CONFIG);
  EXPECT_STREQ(muster_error(), "table_def is NULL");
  EXPECT_EQ(muster_stop(nullptr, 0), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_save(nullptr), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_log(nullptr, "a", 0), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_close(nullptr), 1);
}

TEST_F(MusterCTest, ErrorText_IsThatOfTheThread) {
  EXPECT_EQ(muster_resolve("no such field", nullptr), MUSTER_ERROR_CONFIG);
  muster_task task;
  EXPECT_EQ(muster_resolve("no_such: 1", &task), MUSTER_ERROR_CONFIG);
  EXPECT_THAT(muster_error(), HasSubstr("no_such"));
  std::thread([] { EXPECT_STREQ(muster_error(), ""); }).join();
  EXPECT_EQ(muster_resolve(kSpec, &task), MUSTER_OK);
  EXPECT_STREQ(muster_error(), "");
}

TEST_F(MusterCTest, OtherMachineWithoutKeys_IsASecurityError) {
  EXPECT_EQ(Start("ps_hosts: '192.0.2.1:1' task_index: 'any' tensor { name: "
                  "'w' } training { optimizer { name: 'sgd' } }"),
            nullptr);
  EXPECT_EQ(error_, MUSTER_ERROR_SECURITY) << muster_error();
}

TEST_F(MusterCTest, JobWithoutItsPs_WaitsAndIsStopped) {
  muster_job* const job = Start();
  ASSERT_NE(job, nullptr) << muster_error();
  EXPECT_EQ(error_, MUSTER_OK);
  muster_step step;
  EXPECT_EQ(muster_await(job, 1, &step), MUSTER_WAITING);
  EXPECT_EQ(step.state, MUSTER_WAITING);
  const float* gradients[] = {w_, nullptr};
  EXPECT_EQ(muster_push(job, gradients, nullptr), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_push_tensor(job, 0, w_, nullptr), MUSTER_ERROR_CONFIG);
  EXPECT_THAT(muster_error(), HasSubstr("no step is wanted"));
  EXPECT_EQ(muster_push_tensor(job, 0, nullptr, nullptr), MUSTER_ERROR_CONFIG);
  EXPECT_STREQ(muster_error(), "gradient is NULL");
  EXPECT_EQ(muster_push_tensor(job, 2, w_, nullptr), MUSTER_ERROR_CONFIG);
  EXPECT_THAT(muster_error(), HasSubstr("tensor 2; wanted one from 0 to 1"));
  EXPECT_EQ(muster_rows(job, 0, nullptr, 0, nullptr), -1);
  EXPECT_EQ(muster_log(job, "figure", 1), MUSTER_OK);
  EXPECT_EQ(muster_save(job), MUSTER_OK);
  EXPECT_EQ(muster_stop(job, SIGINT), MUSTER_OK);
  while (muster_await(job, 1000, &step) == MUSTER_WAITING) continue;
  EXPECT_EQ(step.state, MUSTER_OVER);
  EXPECT_EQ(muster_close(job), 128 + SIGINT);
}

TEST_F(MusterCTest, RowsThatCannotBe_AreRefused) {
  muster_job* const job =
      Start(absl::StrCat(kSpec, "table { name: 'user' dim: 1 }"));
  ASSERT_NE(job, nullptr) << muster_error();
  const int64_t id = 1;
  EXPECT_EQ(muster_pull_rows(job, 1, &id, 1, w_, 0), MUSTER_ERROR_CONFIG);
  EXPECT_THAT(muster_error(), HasSubstr("table 1; wanted one from 0 to 0"));
  EXPECT_EQ(muster_push_rows(job, -1, &id, 1, w_), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_pull_rows(job, 0, nullptr, 1, w_, 0), MUSTER_ERROR_CONFIG);
  EXPECT_STREQ(muster_error(), "ids is NULL");
  EXPECT_EQ(muster_pull_rows(job, 0, &id, 1, nullptr, 0), MUSTER_ERROR_CONFIG);
  EXPECT_STREQ(muster_error(), "values is NULL");
  EXPECT_EQ(muster_push_rows(job, 0, &id, 1, nullptr), MUSTER_ERROR_CONFIG);
  EXPECT_STREQ(muster_error(), "gradients is NULL");
  EXPECT_EQ(muster_push_rows(job, 0, &id, -1, w_), MUSTER_ERROR_CONFIG);
  EXPECT_THAT(muster_error(), HasSubstr("count is -1"));
  EXPECT_EQ(muster_push_rows(job, 0, &id, 1, w_), MUSTER_ERROR_CONFIG);
  EXPECT_EQ(muster_pull_rows(job, 0, &id, 1, w_, 0), MUSTER_NOT_YET);
  muster_stop(job, SIGINT);
  int kind = MUSTER_NOT_YET;
  while (kind == MUSTER_NOT_YET) {
    kind = muster_pull_rows(job, 0, &id, 1, w_, 1000);
  }
  EXPECT_EQ(kind, MUSTER_JOB_OVER) << muster_error();
  muster_close(job);
}

TEST_F(MusterCTest, FirstRows_AreThoseOfTheirTable) {
  const int64_t ids[] = {7, -1, 7};
  float values[6] = {};
  ASSERT_EQ(muster_first_rows("name: 'user' dim: 2 scale: 0.5 seed: 3", ids, 3,
                              values),
            MUSTER_OK)
      << muster_error();
  EXPECT_EQ(values[0], values[4]);
  EXPECT_EQ(values[1], values[5]);
  EXPECT_NE(values[0], values[1]);
  EXPECT_NE(values[0], values[2]);
  for (const float value : values) {
    EXPECT_LE(std::abs(value), 0.5f);
  }
  EXPECT_EQ(muster_first_rows("name: 'user' dim: 2 initial: ZEROS scale: 1",
                              ids, 3, values),
            MUSTER_OK);
  EXPECT_THAT(values, ::testing::Each(0.0f));
  EXPECT_EQ(muster_first_rows("name: 'user'", ids, 3, values),
            MUSTER_ERROR_CONFIG);
  EXPECT_THAT(muster_error(), HasSubstr("table 'user': dim must be from 1"));
  EXPECT_EQ(muster_first_rows("nam: 'user'", ids, 3, values),
            MUSTER_ERROR_CONFIG);
}

TEST_F(MusterCTest, ChildOfAFork_IsRefusedByEachCallAndMayEnd) {
  muster_job* const job = Start();
  ASSERT_NE(job, nullptr) << muster_error();
  const pid_t child = fork();
  if (child == 0) {
    muster_step step;
    muster_task task;
    const bool refused = muster_await(job, 1000, &step) == MUSTER_OVER &&
                         std::strstr(muster_error(), "forked") != nullptr &&
                         muster_resolve(kSpec, &task) == MUSTER_ERROR_FORKED &&
                         Start() == nullptr && error_ == MUSTER_ERROR_FORKED &&
                         muster_stop(job, 0) == MUSTER_ERROR_FORKED &&
                         muster_close(job) == 1;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  muster_step step;
  EXPECT_EQ(muster_await(job, 1, &step), MUSTER_WAITING);
  muster_stop(job, SIGINT);
  muster_close(job);
}

TEST_F(MusterCTest, SignalsOfTheJobsThreads_AreTheProgramsThreads) {
  muster_job* const job = Start();
  ASSERT_NE(job, nullptr) << muster_error();
  sigset_t mine;
  pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
  int others = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string text((std::istreambuf_iterator<char>(status)), {});
    if (task.path().filename() == std::to_string(getpid())) continue;
    ++others;
    // SIGTERM is 15.
    EXPECT_THAT(text,
                ::testing::ContainsRegex(
                    "SigBlk:\t[0-9a-f]*[4-7c-f][0-9a-f][0-9a-f][0-9a-f]\n"));
  }
  EXPECT_GT(others, 0);
  muster_stop(job, SIGINT);
  muster_close(job);
}

}  // namespace
}  // namespace muster
