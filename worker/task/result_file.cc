#include "worker/task/result_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/file_descriptor.h"
#include "common/config/json_quote.h"

namespace muster {
namespace {

std::string WorkersJson(absl::Span<const TrainingResult::Worker> workers) {
  std::string json = "[";
  for (const TrainingResult::Worker& worker : workers) {
    JsonObject object(6);
    object.AddText("task", worker.task);
    object.AddCount("steps", worker.steps);
    object.AddCount("examples", worker.examples);
    object.AddNumber("steps_per_s", worker.steps_per_s);
    object.AddNumber("staleness", worker.staleness);
    object.AddCount("dropped_steps", worker.dropped_steps);
    if (worker.traffic.has_value()) {
      object.AddCount("pushes", worker.traffic->pushes());
      object.AddCount("bytes_sent", worker.traffic->bytes_sent());
      object.AddCount("bytes_received", worker.traffic->bytes_received());
    }
    absl::StrAppend(&json, json.size() > 1 ? ",\n    " : "\n    ",
                    object.Finish());
  }
  return json + "\n  ]";
}

std::string TextsJson(absl::Span<const std::string> texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(JsonQuote(text));
  return absl::StrCat("[", absl::StrJoin(quoted, ", "), "]");
}

std::string GradientJson(const TrainingResult& result) {
  JsonObject object(4);
  object.AddText("codec", result.codec);
  object.Add("error_feedback", result.error_feedback ? "true" : "false");
  object.AddCount("bytes_sent", result.gradient_bytes_sent);
  object.AddCount("bytes_as_float32", result.gradient_bytes_float32);
  return object.Finish();
}

std::string PullJson(const TrainingResult& result) {
  JsonObject object(4);
  object.AddText("codec", result.pull_codec);
  object.AddCount("bytes_received", result.pull_bytes_received);
  object.AddCount("bytes_as_float32", result.pull_bytes_float32);
  return object.Finish();
}

std::string BestJson(const TrainingResult::Best& best) {
  JsonObject object(4);
  object.AddText("checkpoint", best.checkpoint);
  object.AddCount("step", best.step);
  object.AddText("metric", best.metric);
  object.AddNumber("value", best.value);
  return object.Finish();
}

std::string UpdateJson(const UpdateSize& update) {
  JsonObject object(4);
  object.AddCount("rows", update.rows());
  object.AddCount("workers", update.workers());
  object.AddCount("of_workers", update.total_workers());
  return object.Finish();
}

std::string TableJson(const std::vector<std::vector<int64_t>>& counts) {
  std::vector<std::string> rows;
  for (const std::vector<int64_t>& row : counts) {
    rows.push_back(absl::StrCat("[", absl::StrJoin(row, ", "), "]"));
  }
  return absl::StrCat("[", absl::StrJoin(rows, ",\n    "), "]");
}

std::string ClassesJson(absl::Span<const ClassFigures> by_class) {
  std::vector<std::string> objects;
  for (const ClassFigures& one : by_class) {
    JsonObject object(6);
    object.AddText("name", one.name);
    object.AddCount("rows", one.rows);
    object.AddNumber("precision", one.precision);
    object.AddNumber("recall", one.recall);
    object.AddNumber("f1", one.f1);
    objects.push_back(object.Finish());
  }
  return absl::StrCat("[", absl::StrJoin(objects, ", "), "]");
}

absl::Status SystemError(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

absl::Status WriteAndSync(int fd, absl::string_view content,
                          const std::string& path) {
  if (!WriteAll(fd, content)) return SystemError("write", path);
  if (fsync(fd) != 0) return SystemError("fsync", path);
  return absl::OkStatus();
}

}  // namespace

void AddEvaluation(const EvaluationResult& result, JsonObject* json) {
  for (const MetricResult::Value& value : result.NamedValues()) {
    json->AddNumber(value.name, value.value);
  }
  json->AddCount(result.NameOf("examples"), result.examples);
  if (result.non_finite > 0) {
    json->AddCount(result.NameOf("non_finite_rows"), result.non_finite);
  }
  for (const MetricResult::Table& table : result.metrics.tables) {
    json->Add(result.NameOf(table.name), TableJson(table.counts));
  }
  if (!result.metrics.by_class.empty()) {
    json->Add(result.NameOf("by_class"), ClassesJson(result.metrics.by_class));
  }
}

std::string ResultJson(const TrainingResult& result) {
  JsonObject json(2);
  json.AddText("model", result.model);
  if (!result.job_namespace.empty()) {
    json.AddText("namespace", result.job_namespace);
  }
  json.AddText("mode", result.mode);
  json.AddText("replication", result.replication);
  for (const auto& [name, value] : result.replication_settings) {
    json.AddCount(name, value);
  }
  json.AddText("optimizer", result.optimizer);
  json.AddText("device", result.device);
  json.Add("devices", TextsJson(result.devices));
  json.Add("cluster", absl::StrCat("{\"ps\": ", result.num_ps,
                                   ", \"worker\": ", result.num_workers, "}"));
  json.AddCount("compute_threads", result.compute_threads);
  json.AddCount("seed", result.seed);
  json.AddCount("batch_size", result.batch_size);
  json.AddCount("accumulate_batches", result.accumulate_batches);
  json.AddCount("rows_per_push", result.rows_per_push);
  for (const EvaluationResult& evaluation : result.evaluations) {
    AddEvaluation(evaluation, &json);
  }
  json.AddNumber("final_loss", result.final_loss);
  json.AddCount("global_step", result.global_step);
  json.AddCount("start_step", result.start_step);
  json.AddCount("examples", result.examples);
  json.AddCount("examples_repeated", result.examples_repeated);
  json.AddCount("examples_skipped", result.examples_skipped);
  if (result.examples_left.has_value()) {
    json.AddCount("examples_left", *result.examples_left);
    json.AddText("coverage", result.coverage);
  }
  json.AddNumber("steps_per_s", result.steps_per_s);
  json.AddNumber("examples_per_s", result.examples_per_s);
  json.AddCount("model_bytes", result.model_bytes);
  json.Add("workers", WorkersJson(result.workers));
  json.AddCount("dropped_steps", result.dropped_steps);
  if (result.update.has_value()) json.Add("update", UpdateJson(*result.update));
  json.Add("gradient", GradientJson(result));
  json.Add("pull", PullJson(result));
  json.AddNumber("wall_s", result.wall_s);
  json.AddNumber("time_to_first_step_s", result.time_to_first_step_s);
  json.AddText("stop_reason", result.stop_reason);
  json.AddText("checkpoint", result.checkpoint);
  if (result.best.has_value()) json.Add("best", BestJson(*result.best));
  json.AddText("muster_version", result.muster_version);
  return json.Finish() + "\n";
}

std::string EvaluationJson(const EvaluationResult& result) {
  JsonObject object(2);
  AddEvaluation(result, &object);
  return object.Finish() + "\n";
}

bool HasEvaluations(absl::string_view result_json,
                    absl::Span<const EvaluationResult> evaluations) {
  return absl::c_all_of(evaluations, [&](const EvaluationResult& evaluation) {
    const std::string text = EvaluationJson(evaluation);
    // Without the braces that it has for itself.
    return absl::StrContains(
        result_json,
        absl::StripSuffix(absl::string_view(text).substr(1), "\n}\n"));
  });
}

std::string EvaluationJson(int64_t global_step,
                           const EvaluationResult& result) {
  JsonObject object(2);
  object.AddCount("global_step", global_step);
  AddEvaluation(result, &object);
  return object.Finish() + "\n";
}

absl::Status CheckCanWrite(const std::string& path) {
  struct stat found;
  if (stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': wanted a file, found a folder"));
  }
  const std::string temporary = path + ".tmp";
  const int fd = open(temporary.c_str(),
                      O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError("open", temporary);
  close(fd);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path,
                                 const std::string& content) {
  const std::string temporary = path + ".tmp";
  const int fd =
      open(temporary.c_str(),
           O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError("open", temporary);
  absl::Status status = WriteAndSync(fd, content, temporary);
  if (close(fd) != 0 && status.ok()) status = SystemError("close", temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError("rename to", path);
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace muster
