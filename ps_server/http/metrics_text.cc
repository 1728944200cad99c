#include "ps_server/http/metrics_text.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/rpc/worker_standing.h"

namespace muster {
namespace {

std::string Number(double value) {
  constexpr double kExact = 1e15;
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < kExact) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  return absl::StrFormat("%.17g", value);
}

double Timestamp(absl::Time wall) {
  return static_cast<double>(absl::ToUnixMillis(wall)) / 1000;
}

// `name="value"`.
std::string Label(absl::string_view name, absl::string_view value) {
  return absl::StrCat(name, "=\"", EscapeLabel(value), "\"");
}

std::string TaskLabels(absl::string_view job, int64_t index) {
  return absl::StrCat(Label("role", job), ",task=\"", index, "\"");
}

// The families in the order in which they came, each with its samples together,
// as the format wants it.
class Families {
 public:
  // `labels`: as Label gives them, with commas between.
  void Gauge(absl::string_view name, absl::string_view help,
             absl::string_view labels, double value) {
    AddSample(*Find(name, "gauge", help), name, labels, value);
  }
  void Counter(absl::string_view name, absl::string_view help,
               absl::string_view labels, double value) {
    AddSample(*Find(name, "counter", help), name, labels, value);
  }
  // `buckets`: the upper bounds, and the observations up to each.
  void Histogram(absl::string_view name, absl::string_view help,
                 const std::string& labels,
                 const std::vector<std::pair<std::string, int64_t>>& buckets,
                 int64_t sum) {
    std::string& text = *Find(name, "histogram", help);
    for (const auto& [bound, count] : buckets) {
      AddSample(text, absl::StrCat(name, "_bucket"),
                absl::StrCat(labels, ",", Label("le", bound)), count);
    }
    AddSample(text, absl::StrCat(name, "_sum"), labels, sum);
    AddSample(text, absl::StrCat(name, "_count"), labels,
              buckets.back().second);
  }

  std::string Text() const {
    std::string text;
    for (const std::string& family : texts_) text += family;
    return text;
  }

 private:
  static void AddSample(std::string& text, absl::string_view name,
                        absl::string_view labels, double value) {
    absl::StrAppend(&text, name, "{", labels, "} ", Number(value), "\n");
  }
  std::string* Find(absl::string_view name, absl::string_view type,
                    absl::string_view help) {
    const auto [found, is_new] = index_.emplace(name, texts_.size());
    if (is_new) {
      texts_.push_back(absl::StrCat("# HELP ", name, " ", help, "\n# TYPE ",
                                    name, " ", type, "\n"));
    }
    return &texts_[found->second];
  }

  std::map<absl::string_view, size_t> index_;
  std::vector<std::string> texts_;
};

void AddProcess(const PsLook& look, const std::string& self, Families* out) {
  out->Gauge("muster_build_info", "1; the version is a label.",
             absl::StrCat(self, ",", Label("version", look.version)), 1);
  out->Gauge("muster_shard_limit_bytes",
             "The most that the models on this ps task may take.", self,
             look.shard.max_bytes);
  out->Counter("muster_push_no_room_total",
               "Parts of gradients that found no room among those that wait.",
               self, look.shard.refused_for_memory);
  out->Gauge("process_resident_memory_bytes", "Memory that the process has.",
             self, look.resident_bytes);
  out->Gauge("process_start_time_seconds", "When it started to serve.", self,
             Timestamp(look.WallOf(look.started)));
  out->Counter("process_cpu_seconds_total", "CPU time of the process.", self,
               look.cpu_seconds);
}

void AddParts(const ShardCounters& counters, const std::string& labels,
              Families* out) {
  const std::pair<const char*, int64_t> kOutcomes[] = {
      {"applied", counters.applied_parts},
      {"duplicate", counters.duplicate_parts},
      {"late", counters.late_parts},
      {"fenced", counters.fenced_parts},
      {"refused", counters.refused_parts}};
  for (const auto& [outcome, count] : kOutcomes) {
    out->Counter("muster_push_parts_total",
                 "Parts of gradients, by what became of them.",
                 absl::StrCat(labels, ",", Label("outcome", outcome)), count);
  }
}

void AddTable(const TableState& table, const std::string& labels,
              Families* out) {
  out->Gauge("muster_table_rows", "Rows of a sparse table here.", labels,
             table.rows());
  out->Gauge("muster_table_bytes", "Their bytes, with what finds them.", labels,
             table.bytes());
  out->Counter("muster_table_created_rows_total",
               "Rows that pushes have made since the model was loaded.", labels,
               table.created_rows());
  out->Counter("muster_table_evicted_rows_total",
               "Rows that were let go for others since then.", labels,
               table.evicted_rows());
}

void AddModel(const ShardLook::Model& model, const std::string& self,
              Families* out) {
  const std::string labels =
      absl::StrCat(self, ",", Label("namespace", model.space));
  out->Gauge("muster_shard_ready",
             "Whether the namespace's model is loaded whole.", labels,
             model.state.phase() == READY ? 1 : 0);
  out->Gauge("muster_parameter_bytes", "Bytes of its parameters here.", labels,
             model.state.bytes());
  out->Gauge("muster_slot_bytes", "Bytes of its optimizer's slots here.",
             labels, model.state.slot_bytes());
  out->Counter("muster_updates_total",
               "Updates of the parameters here, since the ps task started.",
               labels, model.counters.steps);
  out->Counter("muster_unfinished_steps_total",
               "Steps of which some parts came and others did not.", labels,
               model.counters.unfinished_steps);
  AddParts(model.counters, labels, out);
  for (const TableState& table : model.state.tables()) {
    AddTable(
        table,
        absl::StrCat(labels, ",", Label("table", table.definition().name())),
        out);
  }
}

void AddWorker(const PsLook& look, const WorkerState& worker,
               const CoordinatorWorker::Totals& totals,
               const std::string& space, Families* out) {
  const TaskId& task = worker.sender().task();
  const std::string labels =
      absl::StrCat(TaskLabels(task.job(), task.index()), ",", space);
  out->Counter("muster_steps_total",
               "Steps of the worker that were counted, since ps task 0 "
               "started; a restore lowers nothing.",
               labels, totals.steps);
  out->Counter("muster_examples_total", "The examples of these steps.", labels,
               totals.examples);
  out->Counter("muster_dropped_steps_total",
               "Its steps that came too late for their round.", labels,
               totals.dropped_steps);
  if (totals.last_step == absl::InfinitePast()) return;
  out->Gauge("muster_last_step_timestamp_seconds",
             "When its newest counted step was counted.", labels,
             Timestamp(look.WallOf(totals.last_step)));
  out->Gauge("muster_loss", "The loss of its newest step.", labels,
             worker.last_loss());
}

void AddStaleness(const JobState& state, const std::string& space,
                  Families* out) {
  // JobState counts up to 63, and what is more together.
  constexpr int kBounds[] = {0, 1, 2, 4, 8, 16, 32, 63};
  std::vector<std::pair<std::string, int64_t>> buckets;
  int64_t count = 0;
  int64_t sum = 0;
  int next = 0;
  const auto add_up_to = [&](int64_t bound) {
    for (; next <= bound && next < state.staleness_counts_size(); ++next) {
      count += state.staleness_counts(next);
      sum += state.staleness_counts(next) * next;
    }
  };
  for (const int bound : kBounds) {
    add_up_to(bound);
    buckets.emplace_back(absl::StrCat(bound), count);
  }
  add_up_to(state.staleness_counts_size());
  buckets.emplace_back("+Inf", count);
  out->Histogram("muster_staleness_steps",
                 "Steps by their staleness, since the model was loaded; one "
                 "above 64 counts as 64.",
                 space, buckets, sum);
}

// How many workers are in each state, and for whom how many wait.
void AddStandings(const JobState& state, const std::string& space,
                  Families* out) {
  std::map<std::string, int> standings;
  std::map<std::string, int> awaited;
  for (const char* const standing : kWorkerStandings) standings[standing] = 0;
  for (const WorkerState& worker : state.workers()) {
    ++standings[StandingOf(worker)];
    for (const std::string& one : AwaitedBy(worker.waits_for())) {
      ++awaited[one];
    }
  }
  for (const auto& [standing, count] : standings) {
    out->Gauge("muster_workers", "Workers of the job, by their state.",
               absl::StrCat(space, ",", Label("state", standing)), count);
  }
  for (const auto& [one, count] : awaited) {
    out->Gauge("muster_waiting",
               "Workers whose next step waits for this task, for a save or for "
               "workers to come.",
               absl::StrCat(space, ",", Label("for", one)), count);
  }
}

void AddJob(const PsLook& look, const JobLook& job, Families* out) {
  const std::string space = Label("namespace", job.space);
  const JobState& state = job.state;
  for (int i = JobPhase_MIN; i <= JobPhase_MAX; ++i) {
    out->Gauge("muster_job_phase", "1 for the job's phase.",
               absl::StrCat(space, ",", Label("phase", JobPhase_Name(i))),
               i == state.phase() ? 1 : 0);
  }
  out->Gauge("muster_global_step", "Steps in the model; a restore lowers it.",
             space, state.global_step());
  out->Gauge("muster_model_epoch", "Initialisations and restores of the model.",
             space, state.model_epoch());
  if (state.saved_step() >= 0) {
    out->Gauge("muster_checkpoint_last_success_timestamp_seconds",
               "When the newest checkpoint since the model was loaded became "
               "whole.",
               space, Timestamp(look.wall - absl::Seconds(state.saved_s())));
    out->Gauge("muster_checkpoint_last_success_step", "Its global step.", space,
               state.saved_step());
  }
  AddStandings(state, space, out);
  AddStaleness(state, space, out);
  for (int i = 0; i < state.workers_size(); ++i) {
    AddWorker(look, state.workers(i), job.totals[i], space, out);
  }
}

}  // namespace

std::string EscapeLabel(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

std::vector<std::string> AwaitedBy(absl::string_view waits_for) {
  if (waits_for.empty()) return {};
  if (absl::StartsWith(waits_for, "/job:")) {
    return absl::StrSplit(waits_for.substr(0, waits_for.find(" to ")), ", ");
  }
  return {absl::StartsWith(waits_for, "a ps task") ? "save" : "workers"};
}

std::string MetricsText(const PsLook& look) {
  Families families;
  const std::string self = TaskLabels("ps", look.task_index);
  AddProcess(look, self, &families);
  for (const ShardLook::Model& model : look.shard.models) {
    AddModel(model, self, &families);
  }
  for (const JobLook& job : look.jobs) AddJob(look, job, &families);
  return families.Text();
}

}  // namespace muster
