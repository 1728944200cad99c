#include "worker/task/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "common/config/json.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ResultFileTest, IsValidJsonWithEveryMember) {
  TrainingResult result;
  result.model = "a \"quoted\"\nname";
  MetricResult& metrics = result.evaluations.emplace_back().metrics;
  metrics.values = {{"accuracy", 0.91}};
  metrics.tables = {{"confusion_matrix", {{3, 1}, {0, 4}}}};
  metrics.by_class = {{"a\"b", 4, 0.5, 1, 0.25}};
  result.workers.resize(2);
  const auto json = ParseJson(ResultJson(result));
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->Find("model")->text, result.model);
  EXPECT_EQ(json->Find("test_accuracy")->text, "0.91");
  EXPECT_EQ(json->Find("test_confusion_matrix")->items[1].items[1].text, "4");
  const JsonValue& by_class = json->Find("test_by_class")->items[0];
  EXPECT_EQ(by_class.Find("name")->text, "a\"b");
  EXPECT_EQ(by_class.Find("rows")->text, "4");
  EXPECT_EQ(by_class.Find("f1")->text, "0.25");
  EXPECT_EQ(json->Find("workers")->items.size(), 2);
  for (const char* name :
       {"mode", "replication", "optimizer", "cluster", "seed", "test_loss",
        "final_loss", "global_step", "steps_per_s", "examples_per_s", "wall_s",
        "time_to_first_step_s", "stop_reason", "muster_version"}) {
    EXPECT_NE(json->Find(name), nullptr) << name;
  }
}

TEST(ResultFileTest, EachHalfHasItsFigures) {
  TrainingResult result;
  EvaluationResult validated{20, 0.5, {{{"accuracy", 0.75}}, {}}};
  validated.half = "validation";
  validated.non_finite = 1;
  EvaluationResult tested{10, 0.25, {}};
  validated.metrics.tables = {{"confusion_matrix", {{3}}}};
  tested.metrics.tables = {{"confusion_matrix", {{4}}}};
  result.evaluations = {validated, tested};
  const std::string text = ResultJson(result);
  const auto json = ParseJson(text);
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->Find("validation_accuracy")->text, "0.75");
  EXPECT_EQ(json->Find("validation_loss")->text, "0.5");
  EXPECT_EQ(json->Find("validation_examples")->text, "20");
  EXPECT_EQ(json->Find("validation_non_finite_rows")->text, "1");
  EXPECT_NE(json->Find("validation_confusion_matrix"), nullptr);
  EXPECT_EQ(json->Find("test_loss")->text, "0.25");
  EXPECT_EQ(json->Find("test_accuracy"), nullptr);
  EXPECT_NE(json->Find("test_confusion_matrix"), nullptr);
  EXPECT_TRUE(HasEvaluations(text, result.evaluations));
  result.evaluations[1].loss = 0.5;
  EXPECT_FALSE(HasEvaluations(text, result.evaluations));
}

TEST(ResultFileTest, WithoutATestHalf_HasNoFiguresOfOne) {
  const auto json = ParseJson(ResultJson(TrainingResult()));
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->Find("test_loss"), nullptr);
  EXPECT_EQ(json->Find("test_examples"), nullptr);
  EXPECT_NE(json->Find("final_loss"), nullptr);
}

TEST(ResultFileTest, TellsTheRowsThatWereNotTrainedOnOnce) {
  TrainingResult result;
  result.examples_repeated = 64;
  result.examples_skipped = 32;
  EXPECT_EQ(ParseJson(ResultJson(result))->Find("examples_left"), nullptr)
      << "without stop.epochs";
  result.examples_left = 96;
  result.coverage = "each of 60000 examples was trained on once";
  const auto json = ParseJson(ResultJson(result));
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->Find("examples_repeated")->text, "64");
  EXPECT_EQ(json->Find("examples_skipped")->text, "32");
  EXPECT_EQ(json->Find("examples_left")->text, "96");
  EXPECT_EQ(json->Find("coverage")->text, result.coverage);
}

TEST(ResultFileTest, TellsTheBestCheckpointIfOneIsKept) {
  TrainingResult result;
  EXPECT_EQ(ParseJson(ResultJson(result))->Find("best"), nullptr);
  result.best = {"run/ckpt-000000001200", 1200, "test_accuracy", 0.912345678};
  const auto json = ParseJson(ResultJson(result));
  ASSERT_THAT(json, IsOk());
  const JsonValue* const best = json->Find("best");
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->Find("checkpoint")->text, "run/ckpt-000000001200");
  EXPECT_EQ(best->Find("step")->text, "1200");
  EXPECT_EQ(best->Find("metric")->text, "test_accuracy");
  EXPECT_EQ(best->Find("value")->text, "0.912345678");
}

TEST(ResultFileTest, TellsTheNumbersOfTheReplication) {
  TrainingResult result;
  result.replication = "sync";
  result.replication_settings = {{"replicas_to_aggregate", 2},
                                 {"total_replicas", 3}};
  result.dropped_steps = 7;
  result.update.emplace().set_rows(64);
  result.update->set_workers(2);
  result.update->set_total_workers(3);
  result.workers.resize(1);
  result.workers[0].dropped_steps = 7;
  const auto json = ParseJson(ResultJson(result));
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->Find("replicas_to_aggregate")->text, "2");
  EXPECT_EQ(json->Find("total_replicas")->text, "3");
  EXPECT_EQ(json->Find("dropped_steps")->text, "7");
  const JsonValue* const update = json->Find("update");
  ASSERT_NE(update, nullptr);
  EXPECT_EQ(update->Find("rows")->text, "64");
  EXPECT_EQ(update->Find("workers")->text, "2");
  EXPECT_EQ(update->Find("of_workers")->text, "3");
  EXPECT_EQ(json->Find("workers")->items[0].Find("dropped_steps")->text, "7");
}

TEST(ResultFileTest, TellsTheBytesOfGradients) {
  TrainingResult result;
  result.codec = "fp16";
  result.error_feedback = true;
  result.gradient_bytes_sent = 20;
  result.gradient_bytes_float32 = 40;
  const auto json = ParseJson(ResultJson(result));
  ASSERT_THAT(json, IsOk());
  const JsonValue* const gradient = json->Find("gradient");
  ASSERT_NE(gradient, nullptr);
  EXPECT_EQ(gradient->Find("codec")->text, "fp16");
  EXPECT_TRUE(gradient->Find("error_feedback")->boolean);
  EXPECT_EQ(gradient->Find("bytes_sent")->text, "20");
  EXPECT_EQ(gradient->Find("bytes_as_float32")->text, "40");
}

TEST(ResultFileTest, TellsTheBytesOfPulledParameters) {
  TrainingResult result;
  result.pull_codec = "bf16";
  result.pull_bytes_received = 30;
  result.pull_bytes_float32 = 60;
  const auto json = ParseJson(ResultJson(result));
  ASSERT_THAT(json, IsOk());
  const JsonValue* const pull = json->Find("pull");
  ASSERT_NE(pull, nullptr);
  EXPECT_EQ(pull->Find("codec")->text, "bf16");
  EXPECT_EQ(pull->Find("bytes_received")->text, "30");
  EXPECT_EQ(pull->Find("bytes_as_float32")->text, "60");
}

TEST(ResultFileTest, TellsTheBytesOfAllReduceByWorker) {
  TrainingResult result;
  result.model_bytes = 11;
  result.workers.resize(2);
  result.workers[1].traffic.emplace();
  result.workers[1].traffic->set_pushes(2);
  result.workers[1].traffic->set_bytes_sent(10);
  result.workers[1].traffic->set_bytes_received(12);
  const auto json = ParseJson(ResultJson(result));
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->Find("model_bytes")->text, "11");
  const auto& workers = json->Find("workers")->items;
  EXPECT_EQ(workers[0].Find("bytes_sent"), nullptr);
  EXPECT_EQ(workers[1].Find("pushes")->text, "2");
  EXPECT_EQ(workers[1].Find("bytes_sent")->text, "10");
  EXPECT_EQ(workers[1].Find("bytes_received")->text, "12");
}

TEST(ResultFileTest, WhatWasNotMeasuredIsNull) {
  TrainingResult result;
  result.workers.resize(1);
  const auto json = ParseJson(ResultJson(result));
  ASSERT_THAT(json, IsOk());
  for (const char* const name : {"final_loss", "steps_per_s", "examples_per_s",
                                 "time_to_first_step_s"}) {
    EXPECT_EQ(json->Find(name)->kind, JsonValue::Kind::kNull) << name;
  }
  for (const char* const name : {"steps_per_s", "staleness"}) {
    EXPECT_EQ(json->Find("workers")->items[0].Find(name)->kind,
              JsonValue::Kind::kNull)
        << name;
  }
}

TEST(ResultFileTest, ReplacesTheFileAndLeavesNothingElse) {
  const std::string path = testing::TempDir() + "/result.json";
  ASSERT_THAT(WriteFileAtomically(path, "old"), IsOk());
  ASSERT_THAT(WriteFileAtomically(path, "new"), IsOk());
  EXPECT_EQ(ReadAll(path), "new");
  EXPECT_FALSE(std::ifstream(path + ".tmp").good());
}

TEST(ResultFileTest, NamesThePathThatItCannotWrite) {
  EXPECT_THAT(WriteFileAtomically("/nonexistent/result.json", "x"),
              StatusIs(absl::StatusCode::kNotFound,
                       testing::HasSubstr("/nonexistent/result.json")));
}

TEST(ResultFileTest, AnEvaluationIsFourNumbers) {
  EXPECT_EQ(EvaluationJson(200, {500, 0.5, {{{"accuracy", 0.75}}, {}}}),
            "{\n  \"global_step\": 200,\n  \"test_accuracy\": 0.75,\n"
            "  \"test_loss\": 0.5,\n  \"test_examples\": 500\n}\n");
}

}  // namespace
}  // namespace muster
