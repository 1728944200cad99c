// The cluster as JSON, TF_CONFIG and protobuf text.
#include <string>

#include "common/cluster/cluster_json.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/cluster_text.h"
#include "common/cluster/task_id.h"
#include "common/config/json_quote.h"
#include "tests/fuzz/fuzz.h"

namespace muster {
namespace {

constexpr const char* kJobs[] = {"ps", "worker", "chief", "evaluator"};

// Whether the job is of whoever comes.
bool TakesAny(const ClusterSpec& spec, absl::string_view job) {
  return job == kWorkerJob && spec.takes_any_worker();
}

ClusterDef DefOf(const ClusterSpec& spec) {
  ClusterDef def;
  for (const char* const name : kJobs) {
    JobDef* const job = def.add_job();
    job->set_name(name);
    for (const auto& [index, address] : spec.tasks(name)) {
      (*job->mutable_tasks())[index] = address;
    }
    job->set_any_task(TakesAny(spec, name));
  }
  return def;
}

std::string JsonOf(const ClusterSpec& spec) {
  std::string json = "{";
  for (const char* const name : kJobs) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", JsonQuote(name), ":");
    if (TakesAny(spec, name)) {
      json += JsonQuote(kAnyTask);
      continue;
    }
    json += "{";
    for (const auto& [index, address] : spec.tasks(name)) {
      absl::StrAppend(&json, json.back() == '{' ? "" : ",", "\"", index,
                      "\":", JsonQuote(address));
    }
    json += "}";
  }
  return json + "}";
}

void TrySpec(const ClusterSpec& spec) {
  const auto from_text = ParseClusterText(DefOf(spec).DebugString(), "text");
  Want(Wanted(from_text, "the text of a cluster") == spec, "the same cluster");
  const auto from_json = ParseClusterJson(JsonOf(spec), "json");
  Want(Wanted(from_json, "the JSON of a cluster").spec == spec,
       "the same cluster");
  if (spec.num_ps() == 0) spec.ForAllReduce().status().IgnoreError();
}

}  // namespace

void TryInput(absl::string_view input) {
  const auto json = ParseClusterJson(input, "input");
  if (json.ok() && json->spec.has_value()) TrySpec(*json->spec);
  const auto tf_config = ParseTfConfig(input);
  if (tf_config.ok() && tf_config->spec.has_value()) TrySpec(*tf_config->spec);
  const auto text = ParseClusterText(input, "input");
  if (text.ok()) TrySpec(*text);
}

}  // namespace muster
