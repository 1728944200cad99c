#include "worker/saved/ensemble_evaluation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/readable_number.h"
#include "common/base/status_macros.h"
#include "common/config/json_object.h"
#include "worker/task/evaluator.h"
#include "worker/task/result_file.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

// A model of nothing but a loss, which reads the outputs of the ensemble, so
// that its figures are computed as any model's. A loss wants a layer before it:
// the maximum of one pixel is that pixel.
class LossOfOutputs {
 public:
  static absl::StatusOr<std::unique_ptr<LossOfOutputs>> Create(
      const TrainingSpec& training, const CompiledModel& like) {
    auto loss = absl::WrapUnique(new LossOfOutputs());
    TrainingSpec spec;
    spec.mutable_evaluation()->set_batch_size(like.batch_size());
    ModelSpec* const model = spec.mutable_model();
    model->set_name("ensemble");
    for (const int64_t dim : {like.num_outputs(), int64_t{1}, int64_t{1}}) {
      model->add_input_shape(dim);
    }
    LayerSpec* const outputs = model->add_layer();
    outputs->set_name("outputs");
    outputs->set_type("global_max_pool");
    const LayerSpec& last = *training.model().layer().rbegin();
    LayerSpec* const layer = model->add_layer();
    layer->set_name("loss");
    layer->set_type(last.type());
    *layer->mutable_attr() = last.attr();
    ASSIGN_OR_RETURN(loss->devices_, OpenReplica("ref:0", {}, {}));
    ASSIGN_OR_RETURN(loss->model_, CompileTestModel(spec, loss->devices_,
                                                    /*taken_bytes=*/0));
    loss->batch_ =
        MakeLabelledBatch(like.batch_size(), Shape({like.num_outputs(), 1, 1}),
                          like.loss().reads_targets ? like.num_outputs() : 0);
    return loss;
  }

  // Adds the batch that the ensemble has computed.
  absl::Status AddTo(EvaluationSums* sums, const Ensemble& ensemble) {
    const Batch& rows = ensemble.batch(0);
    batch_.rows = rows.rows;
    batch_.id = NewBatchId();
    std::copy(ensemble.outputs().begin(), ensemble.outputs().end(),
              batch_.input().begin());
    if (model_->loss().reads_targets) {
      std::copy(rows.targets().begin(), rows.targets().end(),
                batch_.targets().begin());
    } else {
      std::copy(rows.labels().begin(), rows.labels().end(),
                batch_.labels().begin());
    }
    ASSIGN_OR_RETURN(const auto step, model_->Evaluate(batch_));
    sums->Add(batch_, *model_, step.loss);
    return absl::OkStatus();
  }

  const CompiledModel& model() const { return *model_; }

 private:
  LossOfOutputs() = default;

  ReplicaDevices devices_;
  std::unique_ptr<CompiledModel> model_;
  Batch batch_;
};

EvaluationResult MeanOf(const std::vector<EnsembleResult::Member>& members) {
  EvaluationResult mean = members.front().figures;
  mean.metrics.tables.clear();
  for (size_t i = 1; i < members.size(); ++i) {
    const EvaluationResult& one = members[i].figures;
    mean.loss += one.loss;
    mean.non_finite += one.non_finite;
    for (size_t v = 0; v < mean.metrics.values.size(); ++v) {
      mean.metrics.values[v].value += one.metrics.values[v].value;
    }
  }
  const auto count = static_cast<double>(members.size());
  mean.loss /= count;
  mean.non_finite /= static_cast<int64_t>(members.size());
  for (MetricResult::Value& value : mean.metrics.values) value.value /= count;
  return mean;
}

std::string TableRow(const std::string& name, const EvaluationResult& figures) {
  std::string row = absl::StrCat("| ", name, " |");
  for (const MetricResult::Value& value : figures.metrics.values) {
    absl::StrAppendFormat(&row, " %.4f |", WithoutNanSign(value.value));
  }
  return row + absl::StrFormat(" %.4f |\n", WithoutNanSign(figures.loss));
}

// The evaluations of all members and of the ensemble, under way.
struct AllSums {
  std::vector<EvaluationSums> members;
  std::optional<EvaluationSums> ensemble;
};

absl::StatusOr<AllSums> BeginSums(const Ensemble& ensemble,
                                  const CompiledModel& loss) {
  const EvaluationSpec& spec = ensemble.member(0).training.evaluation();
  AllSums all;
  for (size_t i = 0; i < ensemble.size(); ++i) {
    ASSIGN_OR_RETURN(auto sums,
                     EvaluationSums::Create(spec, ensemble.model(i)));
    all.members.push_back(std::move(sums));
  }
  ASSIGN_OR_RETURN(auto sums, EvaluationSums::Create(spec, loss));
  all.ensemble = std::move(sums);
  return all;
}

EnsembleResult FinishSums(const Ensemble& ensemble, const AllSums& sums) {
  EnsembleResult result;
  for (size_t i = 0; i < ensemble.size(); ++i) {
    result.members.push_back(
        {ensemble.member(i).name, ensemble.member(i).training.model().name(),
         ensemble.path(i), ensemble.device(i), sums.members[i].Finish()});
  }
  result.mean = MeanOf(result.members);
  result.ensemble = sums.ensemble->Finish();
  return result;
}

}  // namespace

absl::StatusOr<EnsembleResult> EvaluateEnsemble(Ensemble* ensemble) {
  ASSIGN_OR_RETURN(
      const auto loss,
      LossOfOutputs::Create(ensemble->member(0).training, ensemble->model(0)));
  ASSIGN_OR_RETURN(AllSums sums, BeginSums(*ensemble, loss->model()));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, ensemble->Next());
    if (!more) break;
    if (ensemble->indices().empty()) continue;
    for (size_t i = 0; i < ensemble->size(); ++i) {
      sums.members[i].Add(ensemble->batch(i), ensemble->model(i),
                          ensemble->loss(i));
    }
    RETURN_IF_ERROR(loss->AddTo(&*sums.ensemble, *ensemble));
  }
  const int64_t examples = sums.ensemble->examples();
  if (examples == 0) return NoRowsError(/*bad=*/ensemble->end() > 0);
  ensemble->rows().bad_records().SayLeftOut(0, examples);
  return FinishSums(*ensemble, sums);
}

std::string EnsembleJson(const EnsembleResult& result) {
  std::vector<std::string> members;
  for (const EnsembleResult::Member& member : result.members) {
    JsonObject json(6);
    json.AddText("name", member.name);
    json.AddText("model", member.model);
    json.AddText("parameters", member.parameters);
    json.AddText("device", member.device);
    AddEvaluation(member.figures, &json);
    members.push_back(json.Finish());
  }
  JsonObject mean(4), ensemble(4), json(2);
  AddEvaluation(result.mean, &mean);
  AddEvaluation(result.ensemble, &ensemble);
  json.Add("members",
           absl::StrCat("[\n    ", absl::StrJoin(members, ",\n    "), "\n  ]"));
  json.Add("mean", mean.Finish());
  json.Add("ensemble", ensemble.Finish());
  return json.Finish() + "\n";
}

std::string EnsembleTable(const EnsembleResult& result) {
  std::string head = "| member |", line = "| --- |";
  for (const MetricResult::Value& value : result.ensemble.metrics.values) {
    absl::StrAppend(&head, " test_", value.name, " |");
    line.append(" --- |");
  }
  std::string table = absl::StrCat(head, " test_loss |\n", line, " --- |\n");
  for (const EnsembleResult::Member& member : result.members) {
    table.append(TableRow(member.name, member.figures));
  }
  return absl::StrCat(table, TableRow("mean", result.mean),
                      TableRow("ensemble", result.ensemble));
}

}  // namespace muster
