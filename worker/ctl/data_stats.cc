// musterctl data stats: what a training's data set holds.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/readable_number.h"
#include "common/base/status_macros.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/ctl/training_flag.h"
#include "worker/ctl/verb.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/file/bad_rows.h"
#include "worker/model/model_graph.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

// The mean and the spread of one channel's values, by Welford's method:
// Knuth, "The Art of Computer Programming", volume 2, 4.2.2.
class ChannelStatistics {
 public:
  void Add(float value) {
    ++count_;
    const double difference = value - mean_;
    mean_ += difference / static_cast<double>(count_);
    squares_ += difference * (value - mean_);
  }
  double mean() const { return mean_; }
  // Over the values as all there are. 0 without any.
  double standard_deviation() const {
    return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
  }

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

struct DataStatistics {
  std::vector<ChannelStatistics> channels;
  std::vector<int64_t> rows_of_class;
  std::vector<ChannelStatistics> targets;
  int64_t bad_rows = 0;
};

// Bad rows are counted if they are passed over.
absl::StatusOr<DataStatistics> Measure(const DataSet& data_set,
                                       BadRecordPolicy on_bad,
                                       const ProgressOutput& output) {
  const Shape& shape = data_set.example_shape();
  const int64_t values = shape.num_elements();
  const int64_t channels = shape.rank() == 3 ? shape.dim(0) : 1;
  DataStatistics statistics;
  statistics.channels.resize(channels);
  statistics.rows_of_class.resize(data_set.num_classes());
  std::vector<float> example(values);
  std::vector<float> targets(data_set.num_targets());
  statistics.targets.resize(targets.size());
  int32_t label = 0;
  ExampleMemory into;
  into.values = example.data();
  if (targets.empty()) {
    into.label = &label;
  } else {
    into.targets = targets.data();
  }
  WorkProgress progress(output);
  progress.Begin({"data stats", data_set.num_examples()});
  for (int64_t i = 0; i < data_set.num_examples(); ++i) {
    progress.AddRow();
    const absl::Status status = data_set.Read(i, into);
    if (on_bad == SKIP && IsBadRecord(status)) {
      ++statistics.bad_rows;
      continue;
    }
    RETURN_IF_ERROR(status);
    if (targets.empty()) ++statistics.rows_of_class[label];
    for (size_t k = 0; k < targets.size(); ++k) {
      statistics.targets[k].Add(targets[k]);
    }
    for (int64_t k = 0; k < values; ++k) {
      statistics.channels[k / (values / channels)].Add(example[k]);
    }
  }
  return statistics;
}

std::string Text(double value) {
  return absl::StrFormat("%.6g", WithoutNanSign(value));
}

// As the stage normalize takes them.
std::string AsAttributes(const std::vector<ChannelStatistics>& channels) {
  std::vector<std::string> means;
  std::vector<std::string> deviations;
  for (const ChannelStatistics& channel : channels) {
    means.push_back(Text(channel.mean()));
    deviations.push_back(Text(channel.standard_deviation()));
  }
  return absl::StrCat("map { type: \"normalize\" attr { name: \"mean\" s: \"",
                      absl::StrJoin(means, ", "),
                      "\" } attr { name: \"std\" s: \"",
                      absl::StrJoin(deviations, ", "), "\" } }\n");
}

std::string DescribeLabels(const DataStatistics& statistics) {
  if (statistics.targets.empty()) {
    return absl::StrCat(" in ", statistics.rows_of_class.size(),
                        " classes\nrows of each class: ",
                        absl::StrJoin(statistics.rows_of_class, ", "), "\n");
  }
  std::string text = absl::StrCat(" with ", statistics.targets.size(),
                                  " targets\nmean and spread of each target:");
  for (const ChannelStatistics& target : statistics.targets) {
    absl::StrAppend(&text, " ", Text(target.mean()), " +- ",
                    Text(target.standard_deviation()));
  }
  return text + "\n";
}

absl::Status Stats(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(const TrainingSpec training, LoadTrainingOf(call));
  ASSIGN_OR_RETURN(const ModelGraph graph,
                   ModelGraph::Create(training.model()));
  LabelSpec labels;
  labels.kind = LabelsOf(graph.loss());
  labels.num_targets = graph.num_outputs();
  ASSIGN_OR_RETURN(const std::unique_ptr<DataSet> data_set,
                   CreateDataSet(training.input(), graph.input_shape(),
                                 training.seed(), Split::kTrain, labels,
                                 /*run=*/nullptr, call.output));
  ASSIGN_OR_RETURN(
      const DataStatistics statistics,
      Measure(*data_set, training.input().on_bad_record(), call.output));
  absl::StrAppend(&result->out, data_set->num_examples(), " examples of ",
                  data_set->example_shape().ToString(),
                  DescribeLabels(statistics));
  for (const std::string& remark : data_set->Remarks()) {
    absl::StrAppend(&result->out, remark, "\n");
  }
  absl::StrAppend(&result->out, AsAttributes(statistics.channels));
  if (statistics.bad_rows > 0) {
    absl::StrAppend(&result->out, statistics.bad_rows,
                    " bad rows are left out\n");
  }
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "data stats",
    {"",
     "reads a training's data and prints its size, classes, mean and spread.\n"
     "  Of the training half, after the stages of input.map as at evaluation;\n"
     "  the last line is the stage that normalizes it, channel by channel.",
     {{"training", "The file with the training spec."},
      {"set", "Overrides a field of it; may be given several times."}},
     0,
     0,
     &Stats});

}  // namespace
}  // namespace muster
