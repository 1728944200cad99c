#include "common/cluster/cluster_json.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/config/json.h"
#include "proto/cluster.pb.h"

namespace muster {
namespace {

// An error at a value's place in the text.
absl::Status ErrorAt(const JsonValue& value, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(value.line, ":", value.column, ": ", message));
}

absl::Status WantedKind(const JsonValue& value, absl::string_view what,
                        absl::string_view wanted) {
  return ErrorAt(value, absl::StrCat(what, " must be ", wanted, ", found ",
                                     JsonKindName(value.kind)));
}

bool ParseIndex(absl::string_view text, int32_t* index) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, index);
}

absl::Status AddTask(const JsonValue& address, int32_t index, JobDef* job) {
  const std::string name = TaskName(MakeTaskId(job->name(), index));
  if (address.kind != JsonValue::Kind::kString) {
    return WantedKind(address, absl::StrCat("the address of ", name),
                      "a string like \"localhost:2222\"");
  }
  // "1" and "01" are two keys of the text and one task.
  if (!job->mutable_tasks()->insert({index, address.text}).second) {
    return ErrorAt(address, absl::StrCat(name, " is given twice"));
  }
  return absl::OkStatus();
}

absl::Status ParseJob(const JsonValue& value, JobDef* job) {
  int32_t index = 0;
  if (value.kind == JsonValue::Kind::kArray) {
    for (const JsonValue& item : value.items) {
      RETURN_IF_ERROR(AddTask(item, index++, job));
    }
    return absl::OkStatus();
  }
  if (job->name() == kWorkerJob && value.kind == JsonValue::Kind::kString &&
      value.text == kAnyTask) {
    job->set_any_task(true);
    return absl::OkStatus();
  }
  if (value.kind != JsonValue::Kind::kObject) {
    return WantedKind(value, absl::StrCat("job '", job->name(), "'"),
                      absl::StrCat("a list of addresses, or a map from task "
                                   "index to address",
                                   job->name() == kWorkerJob
                                       ? ", or \"any\" for workers that come "
                                         "and go"
                                       : ""));
  }
  for (const auto& [key, address] : value.members) {
    if (!ParseIndex(key, &index)) {
      return ErrorAt(address, absl::StrCat("in job '", job->name(),
                                           "' a key must be a task index, "
                                           "found '",
                                           EscapeForLog(key), "'"));
    }
    RETURN_IF_ERROR(AddTask(address, index, job));
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterSpec> ParseJobs(const JsonValue& value) {
  if (value.kind != JsonValue::Kind::kObject) {
    return WantedKind(value, "the cluster", "an object with the jobs");
  }
  ClusterDef def;
  const JsonValue* empty_workers = nullptr;
  for (const auto& [key, job_value] : value.members) {
    const auto name = ParseJobName(EscapeForLog(key));
    if (!name.ok()) return ErrorAt(job_value, name.status().message());
    JobDef* job = def.add_job();
    job->set_name(*name);
    RETURN_IF_ERROR(ParseJob(job_value, job));
    if (*name == kWorkerJob && job->tasks().empty() && !job->any_task()) {
      empty_workers = &job_value;
    }
  }
  const auto spec = ClusterSpec::Create(def);
  if (!spec.ok()) return ErrorAt(value, spec.status().message());
  if (spec->takes_any_worker() && empty_workers != nullptr) {
    // Workers may have been meant to be filled in.
    return ErrorAt(*empty_workers,
                   "job 'worker' lists no task; give tasks, or \"any\" for "
                   "workers that come and go");
  }
  return spec;
}

// An unknown key may be a misspelt one, and what it means be passed over: the
// cluster, or which task this is. Where both wanted ones are, it means neither.
absl::Status CheckKeys(const JsonValue& object, absl::string_view first,
                       absl::string_view second,
                       absl::Span<const absl::string_view> others) {
  const absl::string_view missing = object.Find(first) == nullptr    ? first
                                    : object.Find(second) == nullptr ? second
                                                                     : "";
  if (missing.empty()) return absl::OkStatus();
  for (const auto& [key, value] : object.members) {
    if (key == first || key == second || absl::c_linear_search(others, key)) {
      continue;
    }
    return ErrorAt(value, absl::StrCat("unknown key '", EscapeForLog(key),
                                       "', and no '", missing, "'; wanted '",
                                       first, "' and '", second, "'"));
  }
  return absl::OkStatus();
}

absl::Status ParseTask(const JsonValue& task, ClusterSource* source) {
  if (task.kind != JsonValue::Kind::kObject) {
    return WantedKind(task, "'task'", "an object with 'type' and 'index'");
  }
  RETURN_IF_ERROR(CheckKeys(task, "type", "index", {"trial", "cloud"}));
  if (const JsonValue* type = task.Find("type"); type != nullptr) {
    if (type->kind != JsonValue::Kind::kString) {
      return WantedKind(*type, "'task.type'", "a job name");
    }
    const auto job = ParseJobName(EscapeForLog(type->text));
    if (!job.ok()) return ErrorAt(*type, job.status().message());
    source->job = *job;
  }
  if (const JsonValue* index = task.Find("index"); index != nullptr) {
    int32_t number = 0;
    const bool is_scalar = index->kind == JsonValue::Kind::kNumber ||
                           index->kind == JsonValue::Kind::kString;
    if (!is_scalar || !ParseIndex(index->text, &number)) {
      return ErrorAt(*index,
                     absl::StrCat("'task.index' must be a number from 0, "
                                  "found ",
                                  JsonKindName(index->kind), " '",
                                  EscapeForLog(index->text), "'"));
    }
    source->index = number;
  }
  return absl::OkStatus();
}

// Beside "cluster" a job would be ignored. TF_CONFIG has other things there
// ("environment", "job").
absl::Status CheckNoJobs(const JsonValue& root) {
  for (const auto& [key, value] : root.members) {
    const bool is_job = ParseJobName(EscapeForLog(key)).ok() ||
                        value.kind == JsonValue::Kind::kArray;
    if (!is_job || key == "cluster" || key == "task") continue;
    return ErrorAt(value, absl::StrCat("'", EscapeForLog(key),
                                       "' stands beside 'cluster', where it "
                                       "has no effect: move it into "
                                       "'cluster'"));
  }
  return absl::OkStatus();
}

// `root` may have "cluster" and "task"; without "cluster" there is no spec.
absl::StatusOr<ClusterSource> ParseWrapped(const JsonValue& root) {
  RETURN_IF_ERROR(CheckNoJobs(root));
  ClusterSource source;
  if (const JsonValue* cluster = root.Find("cluster"); cluster != nullptr) {
    ASSIGN_OR_RETURN(source.spec, ParseJobs(*cluster));
    if (source.spec->empty()) source.spec.reset();
  }
  if (const JsonValue* task = root.Find("task"); task != nullptr) {
    RETURN_IF_ERROR(ParseTask(*task, &source));
  }
  return source;
}

absl::StatusOr<ClusterSource> ParseFileRoot(const JsonValue& root) {
  if (root.Find("cluster") != nullptr) return ParseWrapped(root);
  ClusterSource source;
  ASSIGN_OR_RETURN(source.spec, ParseJobs(root));
  return source;
}

// Of TensorFlow, and of the services that start it.
constexpr absl::string_view kOtherKeys[] = {
    "environment", "rpc_layer", "session_master", "eval_session_master",
    "job",         "model_dir", "service",        "trial"};

// The keys of what names no cluster; "" of nothing.
std::string KeysOf(const JsonValue& root) {
  return absl::StrJoin(
      root.members, ", ", [](std::string* out, const auto& member) {
        absl::StrAppend(out, "'", EscapeForLog(member.first), "'");
      });
}

absl::StatusOr<ClusterSource> ParseEnvironment(const JsonValue& root) {
  if (root.kind != JsonValue::Kind::kObject) {
    return WantedKind(root, "the value", "an object");
  }
  ASSIGN_OR_RETURN(ClusterSource source, ParseWrapped(root));
  RETURN_IF_ERROR(CheckKeys(root, "cluster", "task", kOtherKeys));
  if (!source.spec.has_value()) source.instead = KeysOf(root);
  return source;
}

// "name:3:14: ..."; the JSON parser's messages start with the place too.
absl::StatusOr<ClusterSource> Named(absl::StatusOr<ClusterSource> source,
                                    absl::string_view name) {
  if (!source.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ":", source.status().message()));
  }
  source->name = std::string(name);
  return source;
}

}  // namespace

absl::StatusOr<ClusterSource> ParseClusterJson(absl::string_view text,
                                               absl::string_view name) {
  const auto root = ParseJson(text);
  if (!root.ok()) return Named(root.status(), name);
  return Named(ParseFileRoot(*root), name);
}

absl::StatusOr<ClusterSource> ParseTfConfig(absl::string_view text) {
  constexpr absl::string_view kName = "TF_CONFIG";
  if (absl::StripAsciiWhitespace(text).empty()) {
    return Named(ClusterSource(), kName);
  }
  const auto root = ParseJson(text);
  if (!root.ok()) return Named(root.status(), kName);
  return Named(ParseEnvironment(*root), kName);
}

}  // namespace muster
