#include "ps_server/http/status_json.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/escape.h"
#include "common/cluster/task_id.h"
#include "common/config/json_quote.h"
#include "common/rpc/worker_standing.h"

namespace muster {
namespace {

// What an operator is told of a wait is no longer.
constexpr size_t kMaxText = 200;

// JSON has no number that is none.
std::string Number(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.9g", value) : "null";
}

std::string Array(const std::vector<std::string>& items) {
  return absl::StrCat("[", absl::StrJoin(items, ","), "]");
}

// {"name":value}; the values are JSON already.
std::string Object(
    const std::vector<std::pair<const char*, std::string>>& members) {
  return absl::StrCat("{",
                      absl::StrJoin(members, ",",
                                    [](std::string* out, const auto& member) {
                                      absl::StrAppend(out, "\"", member.first,
                                                      "\":", member.second);
                                    }),
                      "}");
}

std::string Bool(bool value) { return value ? "true" : "false"; }

// The reason is a word; what follows it may be any text of a worker's.
std::string FirstWord(absl::string_view reason) {
  return std::string(reason.substr(0, reason.find(':')));
}

std::string WorkerJson(const WorkerState& worker, double last_step_s) {
  const double staleness = static_cast<double>(worker.staleness_sum()) /
                           static_cast<double>(worker.staleness_count());
  return Object(
      {{"task", JsonQuote(TaskName(worker.sender().task()))},
       {"state", JsonQuote(StandingOf(worker))},
       {"steps", absl::StrCat(worker.steps())},
       {"examples", absl::StrCat(worker.examples())},
       {"dropped_steps", absl::StrCat(worker.dropped_steps())},
       {"loss",
        worker.staleness_count() > 0 ? Number(worker.last_loss()) : "null"},
       {"staleness", Number(staleness)},
       {"last_step_s", Number(last_step_s)},
       {"silent_s", Number(worker.silent_s())},
       {"waits_for", JsonQuote(EscapeForLog(worker.waits_for(), kMaxText))}});
}

std::string WorkersJson(const PsLook& look, const JobLook& job) {
  std::vector<std::string> workers;
  for (int i = 0; i < job.state.workers_size(); ++i) {
    workers.push_back(
        WorkerJson(job.state.workers(i),
                   absl::ToDoubleSeconds(look.now - job.totals[i].last_step)));
  }
  return Array(workers);
}

std::string JobJson(const PsLook& look, const JobLook& job) {
  const JobState& state = job.state;
  const bool is_saved = state.saved_step() >= 0;
  return Object(
      {{"phase", JsonQuote(JobPhase_Name(state.phase()))},
       {"model_epoch", absl::StrCat(state.model_epoch())},
       {"global_step", absl::StrCat(state.global_step())},
       {"stop_steps", absl::StrCat(state.stop().steps())},
       {"examples", absl::StrCat(state.examples())},
       {"round", absl::StrCat(state.round())},
       {"ends_by",
        JsonQuote(EscapeForLog(FirstWord(state.stop_reason()), kMaxText))},
       {"is_stopped", Bool(state.is_stopped())},
       {"is_abandoned", Bool(!state.abandoned().empty())},
       {"saved_step", is_saved ? absl::StrCat(state.saved_step()) : "null"},
       {"saved_s", is_saved ? Number(state.saved_s()) : "null"},
       {"staleness_counts",
        absl::StrCat("[", absl::StrJoin(state.staleness_counts(), ","), "]")},
       {"workers", WorkersJson(look, job)}});
}

std::string ShardJson(const ShardState& shard) {
  std::vector<std::string> tables;
  for (const TableState& table : shard.tables()) {
    tables.push_back(Object({{"name", JsonQuote(table.definition().name())},
                             {"rows", absl::StrCat(table.rows())},
                             {"bytes", absl::StrCat(table.bytes())}}));
  }
  return Object({{"phase", JsonQuote(ShardPhase_Name(shard.phase()))},
                 {"tensors", absl::StrCat(shard.tensors())},
                 {"bytes", absl::StrCat(shard.bytes())},
                 {"slot_bytes", absl::StrCat(shard.slot_bytes())},
                 {"updates", absl::StrCat(shard.version())},
                 {"parts", absl::StrCat(shard.applied_parts())},
                 {"tables", Array(tables)}});
}

// By namespace, a shard for each ps task that has answered and has that.
using Shards = std::map<std::string, std::map<int32_t, std::string>>;

Shards ShardsOf(const PsLook& look) {
  Shards shards;
  for (const ShardLook::Model& model : look.shard.models) {
    shards[model.space][look.task_index] = ShardJson(model.state);
  }
  for (const auto& [task, list] : look.others) {
    for (const NamespaceState& space : list.namespaces()) {
      shards[space.namespace_()][task] = ShardJson(space.shard());
    }
  }
  return shards;
}

std::string SpaceJson(const PsLook& look, const std::string& space,
                      const std::map<int32_t, std::string>& shards) {
  std::string job = "null";
  for (const JobLook& one : look.jobs) {
    if (one.space == space) job = JobJson(look, one);
  }
  std::vector<std::string> by_task(look.num_ps, "null");
  for (const auto& [task, shard] : shards) {
    if (task >= 0 && task < look.num_ps) by_task[task] = shard;
  }
  return Object(
      {{"name", JsonQuote(space)}, {"job", job}, {"shards", Array(by_task)}});
}

std::string PsJson(const PsLook& look) {
  std::vector<std::string> tasks;
  for (int32_t i = 0; i < look.num_ps; ++i) {
    const auto other = look.others.find(i);
    const bool is_self = i == look.task_index;
    const int64_t max_bytes =
        is_self ? look.shard.max_bytes
                : (other != look.others.end() ? other->second.max_bytes() : 0);
    tasks.push_back(
        Object({{"task", absl::StrCat(i)},
                {"has_answered", Bool(is_self || other != look.others.end())},
                {"max_bytes", absl::StrCat(max_bytes)}}));
  }
  return Array(tasks);
}

}  // namespace

std::string StatusJson(const PsLook& look) {
  Shards shards = ShardsOf(look);
  for (const JobLook& job : look.jobs) shards[job.space];
  std::vector<std::string> spaces;
  for (const auto& [space, by_task] : shards) {
    spaces.push_back(SpaceJson(look, space, by_task));
  }
  return Object(
             {{"version", JsonQuote(look.version)},
              {"task",
               JsonQuote(absl::StrCat("/job:ps/task:", look.task_index))},
              {"time_s",
               absl::StrFormat("%.3f", absl::ToDoubleSeconds(
                                           look.wall - absl::UnixEpoch()))},
              {"up_s", Number(absl::ToDoubleSeconds(look.now - look.started))},
              {"cpu_s", Number(look.cpu_seconds)},
              {"knows_jobs", Bool(look.knows_jobs)},
              {"ps", PsJson(look)},
              {"namespaces", Array(spaces)}}) +
         "\n";
}

}  // namespace muster
