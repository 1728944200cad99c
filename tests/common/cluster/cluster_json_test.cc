#include "common/cluster/cluster_json.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

TEST(ClusterJsonTest, ReadsListsOfTasks) {
  const auto source = ParseClusterJson(
      R"({"ps": ["h0:1", "h1:1"], "worker": ["w0:1"]})", "c.json");
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ(source->name, "c.json");
  EXPECT_THAT(source->spec->tasks("ps"),
              ElementsAre(Pair(0, "h0:1"), Pair(1, "h1:1")));
  EXPECT_FALSE(source->job.has_value());
}

TEST(ClusterJsonTest, ReadsWorkersThatComeAndGo) {
  const auto source =
      ParseClusterJson(R"({"ps": ["h0:1"], "worker": "any"})", "c.json");
  ASSERT_THAT(source, IsOk());
  EXPECT_TRUE(source->spec->takes_any_worker());
}

TEST(ClusterJsonTest, AnEmptyListOfWorkers_IsNotAnyWorker) {
  for (const char* const workers : {"[]", "{}"}) {
    EXPECT_THAT(
        ParseClusterJson(
            absl::StrCat(R"({"ps": ["h0:1"], "worker": )", workers, "}"), "c"),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("c:1:28: job 'worker' lists no task; give tasks, or "
                           "\"any\"")));
  }
  EXPECT_THAT(ParseClusterJson(R"({"ps": ["h0:1"]})", "c"), IsOk());
}

TEST(ClusterJsonTest, ReadsSparseMapsUnderClusterKey) {
  const auto source = ParseClusterJson(
      R"({"cluster": {"ps": {"0": "h0:1"}, "worker": {"3": "w3:1"}}})", "c");
  ASSERT_THAT(source, IsOk());
  EXPECT_THAT(source->spec->tasks("worker"), ElementsAre(Pair(3, "w3:1")));
}

TEST(ClusterJsonTest, NamesThePlaceOfAMistake) {
  struct Case {
    const char* text;
    const char* wanted;
  };
  const Case kCases[] = {
      {"", "c.json:1:1: wanted a JSON value, found the end"},
      {"[]", "c.json:1:1: the cluster must be an object"},
      {"{\"ps\": [\"h:1\",]}", "c.json:1:15: wanted a JSON value"},
      {"{\"ps\": [\"h:1\"]\n \"worker\": []}", "c.json:2:2: wanted ',' or '}'"},
      {"{\"ps\": [\"h:1\"]} x", "c.json:1:17: wanted the end of the text"},
      {"{\n  \"wroker\": [\"h:1\"]}",
       "c.json:2:13: unknown job 'wroker'; did you mean 'worker'?"},
      {"{\"ps\": [\"h:1\"],\n \"ps\": [\"g:1\"]}",
       "c.json:2:2: the key 'ps' is given twice"},
      {"{\"ps\": [\"h:1\"], \"worker\": {\"1\": \"a:1\", \"01\": \"b:1\"}}",
       "/job:worker/task:1 is given twice"},
      {"{\"ps\": \"h:1\"}", "job 'ps' must be a list of addresses"},
      {"{\"ps\": \"any\"}", "job 'ps' must be a list of addresses"},
      {"{\"ps\": [\"h:1\"], \"worker\": \"all\"}",
       "or \"any\" for workers that come and go, found string"},
      {"{\"ps\": [2222]}",
       "the address of /job:ps/task:0 must be a string like"},
      {"{\"ps\": {\"x\": \"h:1\"}}", "a key must be a task index, found 'x'"},
      {"{\"ps\": {\"-1\": \"h:1\"}}", "a key must be a task index, found '-1'"},
      {"{\"ps\": [\"h\"]}", "address 'h': has no port"},
      {"{\"ps\": [\"h:1\", \"h:1\"]}", "duplicate address 'h:1'"},
      {"{\"cluster\": []}", "c.json:1:13: the cluster must be an object"},
      {"{\"cluster\": {\"ps\": [\"h:1\"]},\n \"worker\": {\"0\": \"w:1\"}}",
       "c.json:2:12: 'worker' stands beside 'cluster'"},
      {"{\"cluster\": {\"ps\": [\"h:1\"]}, \"wroker\": [\"w:1\"]}",
       "'wroker' stands beside 'cluster'"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(ParseClusterJson(c.text, "c.json"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith("c.json:"), HasSubstr(c.wanted))))
        << c.text;
  }
}

TEST(TfConfigTest, ReadsTheKubeflowForm) {
  const auto source = ParseTfConfig(
      R"({"cluster":{"chief":["h:2222"],"ps":["p0:2222","p1:2222"],)"
      R"("worker":["w0:2222","w1:2222"]},"task":{"type":"worker","index":1},)"
      R"("environment":"cloud","rpc_layer":"grpc"})");
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ(source->name, "TF_CONFIG");
  EXPECT_EQ(source->spec->num_tasks(), 5);
  EXPECT_EQ(source->job, "worker");
  EXPECT_EQ(source->index, 1);
}

TEST(TfConfigTest, ReadsTheDynamicWorkerFormOfKubeflow) {
  const auto source = ParseTfConfig(
      R"({"cluster":{"ps":["p0:2222"],"worker":{"1":"worker1:2222"}},)"
      R"("task":{"type":"worker","index":"1"},"environment":"cloud"})");
  ASSERT_THAT(source, IsOk());
  EXPECT_THAT(source->spec->tasks("worker"),
              ElementsAre(Pair(1, "worker1:2222")));
  EXPECT_EQ(source->index, 1);
  EXPECT_EQ(TaskName(source->spec->chief()), "/job:worker/task:0");
}

TEST(TfConfigTest, MasterIsTheChief) {
  const auto source = ParseTfConfig(
      R"({"cluster":{"master":["m:1"],"ps":["p:1"]},"task":{"type":"master"}})");
  ASSERT_THAT(source, IsOk());
  EXPECT_EQ(source->job, "chief");
  EXPECT_EQ(source->spec->tasks("chief").size(), 1);
}

TEST(TfConfigTest, WithoutClusterItNamesNone) {
  for (const char* text :
       {"", "  ", "{}", R"({"environment":"cloud"})", R"({"cluster":{}})"}) {
    const auto source = ParseTfConfig(text);
    ASSERT_THAT(source, IsOk());
    EXPECT_FALSE(source->spec.has_value()) << text;
  }
}

TEST(TfConfigTest, AKeyThatMeansNeitherClusterNorTaskIsIgnored) {
  for (const char* key : {R"("session_master":"grpc://h:1")", R"("job":{})",
                          R"("mine":{"cluster":{}})"}) {
    EXPECT_THAT(ParseTfConfig(absl::StrCat(
                    R"({"cluster":{"ps":["p:1"],"worker":["w:1"]},)"
                    R"("task":{"type":"worker","index":0},)",
                    key, "}")),
                IsOk())
        << key;
  }
}

TEST(TfConfigTest, RefusesAnUnknownKeyInThePlaceOfAKnownOne) {
  struct Case {
    const char* text;
    const char* wanted;
  };
  const Case kCases[] = {
      {R"({"sparseCluster": {}, "task": {"index": 2}})",
       "TF_CONFIG:1:19: unknown key 'sparseCluster', and no 'cluster'"},
      {R"({"cluster": {"ps": ["p:1"]}, "tasks": {"index": 2}})",
       "unknown key 'tasks', and no 'task'; wanted 'cluster' and 'task'"},
      {R"({"task": {"type": "worker", "idx": 2}})",
       "unknown key 'idx', and no 'index'; wanted 'type' and 'index'"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(
        ParseTfConfig(c.text),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.wanted)))
        << c.text;
  }
}

TEST(TfConfigTest, RefusesABadTask) {
  struct Case {
    const char* text;
    const char* wanted;
  };
  const Case kCases[] = {
      {"[]", "TF_CONFIG:1:1: the value must be an object, found list"},
      {"{", "TF_CONFIG:1:2: wanted a key"},
      {R"({"ps": ["p:1"]})", "'ps' stands beside 'cluster'"},
      {R"({"task": 3})", "'task' must be an object"},
      {R"({"task": {"type": 1}})", "'task.type' must be a job name"},
      {R"({"task": {"type": "werker"}})", "did you mean 'worker'"},
      {R"({"task": {"index": -1}})", "'task.index' must be a number from 0"},
      {R"({"task": {"index": 1.5}})", "found number '1.5'"},
      {R"({"task": {"index": "x"}})", "found string 'x'"},
      {R"({"task": {"index": null}})", "found null"},
      {R"({"task": {"index": 99999999999}})", "'task.index'"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(
        ParseTfConfig(c.text),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.wanted)))
        << c.text;
  }
}

}  // namespace
}  // namespace muster
