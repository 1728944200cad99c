// musterctl data bench: how fast a training's data can be had.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/shape.h"
#include "proto/row_ledger.pb.h"
#include "proto/training.pb.h"
#include "worker/ctl/training_flag.h"
#include "worker/ctl/verb.h"
#include "worker/input/bad_records.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/input_pipeline.h"
#include "worker/input/input_threads.h"
#include "worker/input/map/map_chain.h"
#include "worker/input/map/row_random.h"
#include "worker/input/map/row_spec.h"
#include "worker/input/stream/create_stream.h"
#include "worker/input/stream/example_stream.h"
#include "worker/model/model_graph.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

// Rows that are mapped again and again: more than a cache holds.
constexpr int64_t kMappedRows = 32;
constexpr double kDefaultSeconds = 1;

// Reads example after example, without end.
using ReadNext = std::function<absl::Status(float* values)>;

// The stages to measure, and for how long each.
struct Bench {
  TrainingSpec training;
  Shape input_shape;
  LabelSpec labels;
  int64_t num_classes = 0;
  absl::Duration time;
  ProgressOutput output;
};

std::string Line(absl::string_view stage, double rows_per_s, int threads) {
  return absl::StrFormat("%-24s %12.0f examples/s, %d thread%s\n", stage,
                         rows_per_s, threads, threads == 1 ? "" : "s");
}

// Rows a second of `run`, which returns how many it has done.
absl::StatusOr<double> Measure(
    absl::Duration time, absl::FunctionRef<absl::StatusOr<int64_t>()> run) {
  // Memory is taken, and files are found, by the first.
  RETURN_IF_ERROR(run().status());
  int64_t rows = 0;
  const absl::Time begun = SystemClock()->Now();
  while (SystemClock()->Now() < begun + time || rows == 0) {
    ASSIGN_OR_RETURN(const int64_t more, run());
    rows += more;
  }
  return static_cast<double>(rows) /
         absl::ToDoubleSeconds(SystemClock()->Now() - begun);
}

absl::StatusOr<ReadNext> OpenRows(const Bench& bench, const InputSpec& spec,
                                  const Shape& shape) {
  const auto seed = static_cast<uint64_t>(bench.training.seed());
  if (!spec.stream()) {
    ASSIGN_OR_RETURN(
        std::shared_ptr<DataSet> data_set,
        CreateDataSet(spec, shape, seed, Split::kTrain, bench.labels,
                      /*run=*/nullptr, bench.output));
    return ReadNext([data_set, next = int64_t{0}](float* values) mutable {
      return data_set->Read(next++ % data_set->num_examples(), {values});
    });
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<ExampleStream> stream,
      CreateStream(spec, shape, seed, bench.labels, bench.num_classes));
  RETURN_IF_ERROR(stream->Begin());
  return ReadNext(
      [stream, record = StreamRecord()](float* values) mutable -> absl::Status {
        ASSIGN_OR_RETURN(bool more, stream->Next(&record));
        if (!more) {
          RETURN_IF_ERROR(stream->Begin());
          ASSIGN_OR_RETURN(more, stream->Next(&record));
        }
        return stream->Decode(record, /*epoch=*/0, {values});
      });
}

// Measures reading, and leaves the rows in `rows`.
absl::Status MeasureRead(const Bench& bench, const RowSpec& stored,
                         std::vector<AlignedBuffer>* rows, std::string* out) {
  InputSpec spec = bench.training.input();
  spec.clear_map();
  ASSIGN_OR_RETURN(const ReadNext read, OpenRows(bench, spec, stored.shape));
  const auto run = [&]() -> absl::StatusOr<int64_t> {
    for (AlignedBuffer& row : *rows) {
      const absl::Status status = read(row.as<float>());
      if (spec.on_bad_record() == SKIP && IsBadRecord(status)) continue;
      RETURN_IF_ERROR(status);
    }
    return static_cast<int64_t>(rows->size());
  };
  ASSIGN_OR_RETURN(const double rate, Measure(bench.time, run));
  absl::StrAppend(out, Line("read", rate, 1));
  return absl::OkStatus();
}

// Measures a stage of input.map, and puts the rows that it makes in the place
// of `rows`.
absl::Status MeasureStage(const Bench& bench, const MapSpec& stage,
                          RowSpec* spec, std::vector<AlignedBuffer>* rows,
                          std::string* out) {
  ASSIGN_OR_RETURN(const MapChain chain,
                   MapChain::Create({{stage.type(), stage.attr()}}, *spec));
  MapChain::Scratch scratch = chain.MakeScratch();
  const auto from = static_cast<size_t>(chain.input().num_bytes());
  const auto to = static_cast<size_t>(chain.output().num_bytes());
  std::vector<AlignedBuffer> mapped;
  for (size_t i = 0; i < rows->size(); ++i) mapped.emplace_back(to);
  int64_t epoch = 0;
  const auto run = [&]() -> absl::StatusOr<int64_t> {
    ++epoch;
    for (size_t i = 0; i < rows->size(); ++i) {
      RETURN_IF_ERROR(chain.Apply(
          {(*rows)[i].as<char>(), from}, {mapped[i].as<char>(), to},
          RowRandom(/*seed=*/1, epoch, static_cast<int64_t>(i)), &scratch));
    }
    return static_cast<int64_t>(rows->size());
  };
  ASSIGN_OR_RETURN(const double rate, Measure(bench.time, run));
  absl::StrAppend(out, Line(absl::StrCat("map ", stage.type()), rate, 1));
  *spec = chain.output();
  *rows = std::move(mapped);
  return absl::OkStatus();
}

// Measures all of it together, as a worker has it.
absl::Status MeasureBatches(const Bench& bench, std::string* out) {
  const InputSpec& spec = bench.training.input();
  const auto seed = static_cast<uint64_t>(bench.training.seed());
  BadRecords bad_records{Reporter()};
  InputPipeline::Options options;
  options.seed = seed;
  options.shuffle = spec.shuffle();
  options.shuffle_buffer = spec.shuffle_buffer();
  options.batch_size = std::max(spec.batch_size(), spec.global_batch_size());
  options.prefetch = spec.prefetch();
  options.threads =
      InputThreads(spec, static_cast<int>(std::thread::hardware_concurrency()));
  if (spec.on_bad_record() == SKIP) options.bad_records = &bad_records;
  std::unique_ptr<DataSet> data_set;
  if (!spec.stream()) {
    ASSIGN_OR_RETURN(data_set, CreateDataSet(spec, bench.input_shape, seed,
                                             Split::kTrain, bench.labels,
                                             /*run=*/nullptr, bench.output));
  }
  const InputData data =
      data_set != nullptr ? InputData(data_set.get()) : InputData([&] {
        return CreateStream(spec, bench.input_shape, seed, bench.labels,
                            bench.num_classes);
      });
  ASSIGN_OR_RETURN(const std::unique_ptr<InputPipeline> pipeline,
                   InputPipeline::Create(data, options));
  // Those of the next batch, and of as many as are prepared ahead.
  std::vector<RowLease> leases;
  int64_t place = 0;
  const auto run = [&]() -> absl::StatusOr<int64_t> {
    for (; static_cast<int64_t>(leases.size()) <= options.prefetch;
         place += options.batch_size) {
      RowRange* const range = leases.emplace_back().add_ranges();
      range->set_first(place);
      range->set_rows(options.batch_size);
    }
    pipeline->SetLeases(leases, StreamPass());
    leases.erase(leases.begin());
    RETURN_IF_ERROR(pipeline->Next().status());
    return options.batch_size;
  };
  ASSIGN_OR_RETURN(const double rate, Measure(bench.time, run));
  absl::StrAppend(out, Line(absl::StrCat("batches of ", options.batch_size),
                            rate, options.threads));
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> TimeOf(const VerbCall& call) {
  const std::string text = call.Flag("seconds");
  double seconds = kDefaultSeconds;
  if (text.empty() ||
      (absl::SimpleAtod(text, &seconds) && seconds > 0 && seconds <= 3600)) {
    return absl::Seconds(seconds);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--seconds: wanted a number above 0, up to 3600, found ", text));
}

absl::StatusOr<Bench> MakeBench(const VerbCall& call) {
  Bench bench;
  bench.output = call.output;
  ASSIGN_OR_RETURN(bench.time, TimeOf(call));
  ASSIGN_OR_RETURN(bench.training, LoadTrainingOf(call));
  ASSIGN_OR_RETURN(const ModelGraph graph,
                   ModelGraph::Create(bench.training.model()));
  bench.input_shape = graph.input_shape();
  bench.num_classes = graph.num_outputs();
  bench.labels.kind = LabelsOf(graph.loss());
  if (bench.labels.kind == LabelKind::kTargets) {
    bench.labels.num_targets = graph.num_outputs();
  }
  return bench;
}

absl::Status RunBench(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(const Bench bench, MakeBench(call));
  const InputSpec& spec = bench.training.input();
  ASSIGN_OR_RETURN(const DataSetRequest request,
                   MakeDataSetRequest(spec, bench.input_shape, /*seed=*/0,
                                      Split::kTrain, bench.labels));
  RowSpec row{FLOAT32, request.example_shape};
  std::vector<AlignedBuffer> rows;
  for (int64_t i = 0; i < kMappedRows; ++i) rows.emplace_back(row.num_bytes());
  RETURN_IF_ERROR(MeasureRead(bench, row, &rows, &result->out));
  for (const MapSpec& stage : spec.map()) {
    RETURN_IF_ERROR(MeasureStage(bench, stage, &row, &rows, &result->out));
  }
  return MeasureBatches(bench, &result->out);
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "data bench",
    {"",
     "measures how many examples a second each stage of a training's input "
     "makes.\n"
     "  One thread reads, and maps by each stage of input.map; then batches "
     "are "
     "made\n"
     "  as a worker has them, by input.threads with all cores of the machine.",
     {{"training", "The file with the training spec."},
      {"set", "Overrides a field of it; may be given several times."},
      {"seconds", "Time for each stage; default 1."}},
     0,
     0,
     &RunBench});

}  // namespace
}  // namespace muster
