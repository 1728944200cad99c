#include "worker/hook/summary_hooks.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/optimizer/update_rule.h"
#include "common/summary/summary_value.h"
#include "common/summary/write_summary.h"
#include "google/protobuf/text_format.h"
#include "worker/hook/session_summaries.h"
#include "worker/hook/tensor_summaries.h"
#include "worker/hook/training_summaries.h"
#include "worker/input/image/example_pixels.h"
#include "worker/input/image/png_encoder.h"
#include "worker/metric/class_table.h"
#include "worker/metric/table_picture.h"

namespace muster {
namespace {

WriteSummary WriteTo(EventFileWriter* writer) {
  return [writer](int64_t global_step, Summary summary) {
    writer->Add(global_step, std::move(summary));
  };
}

std::unique_ptr<Hook> MakeSessionSummaries(const TrainingSpec& training,
                                           const SummaryParts& parts) {
  EventFileWriter* const writer = parts.writer;
  std::string text;
  google::protobuf::TextFormat::PrintToString(training, &text);
  return std::make_unique<SessionSummaries>(
      std::move(text), parts.hparams,
      [writer](int64_t first_step) { writer->AddSessionStart(first_step); },
      WriteTo(writer),
      [writer, graph = parts.graph](int64_t global_step) {
        if (graph.node().empty()) return;
        writer->AddGraph(global_step, graph);
      },
      [writer] { return writer->WallNow(); });
}

// Adds the table as a picture.
absl::Status AddTable(absl::string_view tag, const MetricResult::Table& table,
                      Summary* summary) {
  ASSIGN_OR_RETURN(const TablePicture picture, DrawTable(table));
  ASSIGN_OR_RETURN(
      const std::string png,
      EncodePng({picture.side, picture.side, /*channels=*/1, picture.pixels}));
  AddImages(tag, picture.side, picture.side, {png}, summary);
  return absl::OkStatus();
}

}  // namespace

bool HasSummaries(const TrainingSpec& training) {
  return training.summary().every_steps() > 0 ||
         training.summary().histograms_every_steps() > 0;
}

absl::StatusOr<std::vector<std::unique_ptr<Hook>>> MakeSummaryHooks(
    const TrainingSpec& training, const SummaryParts& parts) {
  std::vector<std::unique_ptr<Hook>> hooks;
  if (parts.writer == nullptr) return hooks;
  const WriteSummary write = WriteTo(parts.writer);
  const SummarySpec& summary = training.summary();
  hooks.push_back(MakeSessionSummaries(training, parts));
  if (summary.every_steps() > 0) {
    ASSIGN_OR_RETURN(const LearningRate learning_rate,
                     LearningRateOf(training.optimizer()));
    hooks.push_back(std::make_unique<TrainingSummaries>(
        summary.every_steps(), parts.accuracy_curve, learning_rate, write,
        parts.rate_factor));
    hooks.push_back(std::make_unique<JobSummaries>(
        summary.every_steps(), parts.clock, parts.ask_job_state, write));
  }
  if (summary.histograms_every_steps() > 0) {
    hooks.push_back(std::make_unique<TensorSummaries>(
        summary.histograms_every_steps(), write));
  }
  return hooks;
}

std::unique_ptr<InputImages> MakeInputImages(const SummarySpec& summary,
                                             const SummaryParts& parts) {
  if (parts.writer == nullptr || summary.images() == 0 ||
      !IsImage(parts.example_shape)) {
    return nullptr;
  }
  return std::make_unique<InputImages>(
      InputImages::Options{summary.every_steps(), parts.example_shape},
      parts.read_examples, WriteTo(parts.writer), parts.reporter);
}

Evaluation::Listener MakeEvaluationSummaries(EventFileWriter* writer,
                                             Reporter reporter) {
  return
      [writer, reporter](int64_t global_step, const EvaluationResult& result) {
        Summary summary;
        for (const MetricResult::Value& value : result.NamedValues()) {
          AddScalar(value.name, value.value, &summary);
        }
        if (result.non_finite > 0) {
          AddScalar(result.NameOf("non_finite_rows"),
                    static_cast<double>(result.non_finite), &summary);
        }
        for (const MetricResult::Table& table : result.metrics.tables) {
          const std::string tag = result.NameOf(table.name);
          const absl::Status status = AddTable(tag, table, &summary);
          if (status.ok()) continue;
          reporter.Info(absl::StrCat("no picture of ", tag, " at step ",
                                     global_step, ": ", status.message()));
        }
        if (!result.metrics.by_class.empty()) {
          AddText(result.NameOf("by_class"),
                  absl::StrJoin(ClassTableLines(result.metrics.by_class), "\n"),
                  &summary);
        }
        writer->Add(global_step, std::move(summary));
      };
}

CheckpointSaver::Begin WriteSummariesFirst(EventFileWriter* writer,
                                           CheckpointSaver::Begin begin) {
  if (writer == nullptr) return begin;
  return [writer, begin]() -> absl::StatusOr<PendingSave> {
    ASSIGN_OR_RETURN(PendingSave save, begin());
    save.write = [writer, write = std::move(save.write)] {
      writer->Flush();
      return write();
    };
    save.write_best = [writer, write = std::move(save.write_best)](
                          const EvaluationHistory& history) {
      writer->Flush();
      return write(history);
    };
    return save;
  };
}

}  // namespace muster
