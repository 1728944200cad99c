#include "worker/python/program_options.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/certificates.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kCluster[] =
    "ps_hosts: 'localhost:2222' worker_hosts: 'any' task_index: '0' ";
constexpr char kTensor[] = "tensor { name: 'w' shape: [ 3, 2 ] } ";

absl::StatusOr<KeyedProgram> Make(const std::string& text) {
  auto resolved = ResolveProgram(text);
  if (!resolved.ok()) return resolved.status();
  return MakeProgramOptions(*std::move(resolved));
}

// The text of a training that has `more`.
std::string Training(const std::string& more = "") {
  return absl::StrCat(
      "training { optimizer { name: 'sgd' attr { name: 'learning_rate' f: 0.1 "
      "} } ",
      more, " } ");
}

// The usual text and `more`.
absl::StatusOr<KeyedProgram> MakeWith(const std::string& more) {
  return Make(absl::StrCat(kCluster, Training(), kTensor, more));
}

absl::StatusOr<KeyedProgram> MakeTraining(const std::string& training) {
  return Make(absl::StrCat(kCluster, training, kTensor));
}

class ProgramOptionsTest : public ::testing::Test {
 protected:
  ProgramOptionsTest() {
    for (const char* name : {"TF_CONFIG", "WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})
      unsetenv(name);
  }
  ~ProgramOptionsTest() override { unsetenv("TF_CONFIG"); }
};

TEST_F(ProgramOptionsTest, SpecWithoutMore_HasDefaults) {
  const auto program = MakeWith("");
  ASSERT_THAT(program, IsOk());
  const WorkerOptions& worker = program->options.worker;
  EXPECT_EQ(worker.self.job(), "worker");
  EXPECT_EQ(worker.self.index(), 0);
  EXPECT_EQ(worker.max_wait, absl::Hours(2));
  EXPECT_EQ(worker.progress_every, absl::Seconds(10));
  EXPECT_TRUE(worker.training.replication().has_async());
  EXPECT_EQ(worker.training.checkpoint().keep(), 5);
  EXPECT_FALSE(worker.training.has_input());
  EXPECT_EQ(worker.listen_address, "");
  EXPECT_EQ(program->keys, nullptr);
  EXPECT_THAT(ElementsOf(program->options.tensors), ElementsAre(6));
}

TEST_F(ProgramOptionsTest, FieldsOfTheWorker_AreTaken) {
  const auto program = MakeWith(
      "namespace: 'team/a' train_dir: 'run1' max_wait_seconds: 3 "
      "progress_every_seconds: 0.5 epoch_rows: 100 step_rows: 10 "
      "steps_ahead: 2 in_order: true settings: 'decay=1'");
  ASSERT_THAT(program, IsOk());
  const ProgramOptions& options = program->options;
  EXPECT_EQ(options.worker.job_namespace, "team/a");
  EXPECT_EQ(options.worker.train_dir, "run1");
  EXPECT_EQ(options.worker.max_wait, absl::Seconds(3));
  EXPECT_EQ(options.worker.progress_every, absl::Milliseconds(500));
  EXPECT_EQ(options.epoch_rows, 100);
  EXPECT_EQ(options.step_rows, 10);
  EXPECT_EQ(options.steps_ahead, 2);
  EXPECT_TRUE(options.in_order);
  EXPECT_EQ(options.settings, "decay=1");
}

TEST_F(ProgramOptionsTest, MisspelledField_IsNamedWithTheNearest) {
  EXPECT_THAT(MakeWith("step_row: 3"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("program:1:"), HasSubstr("step_rows"))));
}

TEST_F(ProgramOptionsTest, TfConfig_IsTheCluster) {
  setenv(
      "TF_CONFIG",
      "{\"cluster\": {\"ps\": [\"localhost:1\", \"localhost:2\"], "
      "\"worker\": [\"localhost:3\", \"localhost:4\"]}, \"task\": {\"type\": "
      "\"worker\", \"index\": 1}}",
      1);
  const auto program = Make(absl::StrCat(Training(), kTensor));
  ASSERT_THAT(program, IsOk());
  const WorkerOptions& worker = program->options.worker;
  EXPECT_EQ(worker.self.index(), 1);
  EXPECT_EQ(worker.cluster.num_ps(), 2);
  EXPECT_EQ(worker.listen_address, "localhost:4");
}

TEST_F(ProgramOptionsTest, NoPsTasks_SayWhatToGive) {
  for (const char* cluster :
       {"", "worker_hosts: 'localhost:1,localhost:2' task_index: '0' "}) {
    EXPECT_THAT(Make(absl::StrCat(cluster, Training(), kTensor)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("a program's parameters are on ps"),
                               HasSubstr("muster.local(ps=1)"))))
        << cluster;
  }
}

TEST_F(ProgramOptionsTest, WorkerOfAny_IsNumberedLater) {
  const auto program = Make(absl::StrCat(
      "ps_hosts: 'localhost:2222' task_index: 'any' ", Training(), kTensor));
  ASSERT_THAT(program, IsOk());
  EXPECT_EQ(program->options.worker.self.index(), -1);
}

TEST_F(ProgramOptionsTest, WorkerOfAnyWithKeys_HasItsCertificatesNumber) {
  const auto made = Certificates::Make();
  ASSERT_THAT(made, IsOk());
  const std::string& folder = (*made)->folder();
  const std::string text =
      absl::StrCat("ps_hosts: '192.0.2.1:2222' task_index: 'any' certs_dir: '",
                   folder, "' ", Training(), kTensor);
  for (const char* stem : {"/worker-0", "/worker-2"}) {
    std::filesystem::rename(folder + stem + ".pem", folder + stem + ".p");
  }
  const auto program = Make(text);
  ASSERT_THAT(program, IsOk());
  EXPECT_EQ(program->options.worker.self.index(), 1);
  ASSERT_NE(program->keys, nullptr);
  EXPECT_TRUE(program->options.worker.credentials.proves_callers);
  std::filesystem::rename(folder + "/worker-0.p", folder + "/worker-0.pem");
  std::filesystem::remove(folder + "/worker-1.pem");
  EXPECT_THAT(Make(text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the certificate is that of worker 0")));
}

TEST_F(ProgramOptionsTest, PsOnAnotherMachine_WantsTrust) {
  const std::string text = absl::StrCat(
      "ps_hosts: '192.0.2.1:2222' task_index: 'any' ", Training(), kTensor);
  EXPECT_THAT(Make(text), StatusIs(absl::StatusCode::kUnauthenticated,
                                   HasSubstr("192.0.2.1")));
  EXPECT_THAT(Make(absl::StrCat(text, "allow_insecure_network: true")), IsOk());
}

TEST_F(ProgramOptionsTest, UnusableTensors_AreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "at least one tensor that is trained"},
      {"tensor { name: 's' shape: 1 is_state: true }",
       "at least one tensor that is trained"},
      {"tensor { shape: 1 }", "wants a name"},
      {"tensor { name: 'a' shape: 1 } tensor { name: 'a' shape: 2 }",
       "'a' is there twice"},
      {"tensor { name: 'a' shape: [ 2, 0 ] }", "tensor 'a': each size"},
      {"tensor { name: 'a' shape: -1 }", "tensor 'a'"},
  };
  for (const auto& [tensors, message] : cases) {
    EXPECT_THAT(
        Make(absl::StrCat(kCluster, Training(), tensors)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

TEST_F(ProgramOptionsTest, Tables_AreTaken) {
  const auto program =
      MakeWith("table { name: 'user' dim: 16 } table { name: 'item' dim: 1 }");
  ASSERT_THAT(program, IsOk());
  ASSERT_EQ(program->options.tables.size(), 2u);
  EXPECT_EQ(program->options.tables[0].name(), "user");
  EXPECT_EQ(program->options.tables[1].dim(), 1);
}

TEST_F(ProgramOptionsTest, UnusableTables_AreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"table { dim: 1 }", "each table wants a name"},
      {"table { name: 'a' }", "table 'a': dim must be from 1 to 65536"},
      {"table { name: 'a' dim: 65537 }", "table 'a': dim must be from 1"},
      {"table { name: 'a' dim: 1 } table { name: 'a' dim: 1 }",
       "table 'a' is there twice"},
      {"table { name: 'w' dim: 1 }", "table 'w' is there twice"},
  };
  for (const auto& [tables, message] : cases) {
    EXPECT_THAT(MakeWith(tables), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr(message)))
        << tables;
  }
}

TEST_F(ProgramOptionsTest, UnusableNumbers_AreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"epoch_rows: -1", "epoch_rows must be"},
      {"epoch_rows: 10", "step_rows must be from 1"},
      {"step_rows: 10", "step_rows: without epoch_rows"},
      {"steps_ahead: 1", "steps_ahead: without epoch_rows"},
      {"epoch_rows: 9 step_rows: 1 steps_ahead: -1", "steps_ahead must be"},
      {"max_wait_seconds: -1", "max_wait_seconds must be"},
      {"progress_every_seconds: nan", "progress_every_seconds must be"},
      {"namespace: 'a b'", "namespace"},
      {"link: 'pigeon'", "pigeon"},
      {"train_dir: '~/run'", "train_dir"},
  };
  for (const auto& [more, message] : cases) {
    EXPECT_THAT(MakeWith(more), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr(message)))
        << more;
  }
}

TEST_F(ProgramOptionsTest, TrainingThatCountsWorkers_DoesNotSuitAny) {
  EXPECT_THAT(
      MakeTraining("training { optimizer { name: 'sgd' reference_batch_size: 8 "
                   "learning_rate_scaling: LINEAR attr { name: 'learning_rate' "
                   "f: 1 } } replication { sync {} } }"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("learning_rate_scaling")));
}

TEST_F(ProgramOptionsTest, BadTraining_IsNamedByItsField) {
  EXPECT_THAT(
      MakeTraining("training { optimizer { name: 'adamm' } }"),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("training: optimizer"), HasSubstr("adam"))));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"replication { all_reduce {} }", "all_reduce"},
      {"stop { epochs: 2 }", "stop.epochs: without epoch_rows"},
      {"model { name: 'm' }", "model: the program"},
  };
  for (const auto& [more, message] : cases) {
    EXPECT_THAT(
        MakeTraining(Training(more)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

}  // namespace
}  // namespace muster
