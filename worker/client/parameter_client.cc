#include "worker/client/parameter_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/call_table.h"
#include "common/rpc/deadline.h"
#include "common/tensor/aligned_places.h"
#include "worker/client/call_status.h"
#include "worker/client/joined_pieces.h"
#include "worker/client/transfer_plan.h"

namespace muster {
namespace {

std::vector<std::vector<int64_t>> PartBytes(const TransferPlan& plan) {
  std::vector<std::vector<int64_t>> bytes(plan.parts.size());
  for (size_t shard = 0; shard < plan.parts.size(); ++shard) {
    for (const PlannedPart& part : plan.parts[shard]) {
      bytes[shard].push_back(part.bytes);
    }
  }
  return bytes;
}

std::string PushName(int64_t step) {
  return absl::StrCat("push of step ", step);
}

// Where each shard begins each of its tensors or pieces, and what all take.
struct ShardPlaces {
  std::vector<std::vector<int64_t>> begins;  // by tensor and extent
  std::vector<AlignedPlaces> places;         // by ps task
};

ShardPlaces PlaceOnShards(const ClientModel& model, int num_shards) {
  ShardPlaces placed;
  placed.places.resize(num_shards);
  placed.begins.resize(model.tensors.size());
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const int tensor = static_cast<int>(i);
    const int64_t elements = model.NumElements(tensor, "");
    const int64_t element_bytes = model.ElementBytes(tensor, "");
    for (const TensorExtent& extent : model.placement[i]) {
      AlignedPlaces& places = placed.places[extent.ps];
      const int64_t size_bytes = extent.length * element_bytes;
      placed.begins[i].push_back(extent.IsAllOf(elements)
                                     ? places.Add(size_bytes)
                                     : places.AddAtPage(size_bytes));
    }
  }
  return placed;
}

// The values of a tensor in the memory of its shards; joined if it is in
// pieces, and then that is added to `in_place`, too. Errors: JoinPieces'.
absl::Status AddValues(const ClientModel& model, int tensor,
                       absl::Span<const int64_t> begins,
                       ParametersInPlace* in_place) {
  std::vector<TensorView> pieces;
  for (size_t i = 0; i < begins.size(); ++i) {
    const TensorExtent& extent = model.placement[tensor][i];
    pieces.push_back({in_place->memory[extent.ps].get() + begins[i],
                      extent.length * model.ElementBytes(tensor, "")});
  }
  if (pieces.size() == 1) {
    in_place->values.push_back(pieces.front());
    return absl::OkStatus();
  }
  absl::StatusOr<std::shared_ptr<const char>> joined = JoinPieces(pieces);
  RETURN_IF_ERROR(Annotate(
      joined.status(), absl::StrCat("'", model.tensors[tensor].name(), "'")));
  in_place->values.push_back({joined->get(), model.TensorBytes(tensor)});
  in_place->joined.push_back(*std::move(joined));
  return absl::OkStatus();
}

// Makes the rows of a push part of it, whose versions are known. Errors:
// InvalidArgument.
absl::Status AddRows(const RowPush& rows, Push::Options* push) {
  const ClientModel& model = *push->model;
  if (model.tables.empty() && rows.rows.empty()) return absl::OkStatus();
  std::vector<int> of_tensors = model.plan.pushed_parts;
  if (push->rows_alone) of_tensors.assign(of_tensors.size(), 0);
  ASSIGN_OR_RETURN(push->rows,
                   PushedRows::Cut(model, rows, push->versions, of_tensors));
  return absl::OkStatus();
}

// The version on the only shard; 0 if it has nothing.
int64_t VersionOf(const PulledVersions& versions) {
  const std::vector<int64_t>& parts = versions.parts.front();
  return parts.empty() ? 0 : parts.front();
}

}  // namespace

ParameterClient::ParameterClient(
    Options options, std::vector<std::unique_ptr<ParameterLink>> links)
    : codec_(options.codec),
      pull_codec_(options.pull_codec),
      encoder_(options.codec == nullptr
                   ? nullptr
                   : std::make_unique<PushEncoder>(options.codec,
                                                   options.error_feedback)),
      chief_(&shards_),
      shards_(std::move(options), std::move(links)) {}

void ParameterClient::Hello(int ps_task, const HelloRequest& request,
                            ReplyCallback<HelloReply> done) {
  shards_.link(ps_task).Call(kHelloCall, request,
                             shards_.clock().Now() + kControlTimeout,
                             std::move(done));
}

void ParameterClient::ListNamespaces(int ps_task,
                                     ReplyCallback<ListNamespacesReply> done) {
  shards_.link(ps_task).Call(kListNamespacesCall, {},
                             shards_.clock().Now() + kControlTimeout,
                             std::move(done));
}

absl::Status ParameterClient::SetModel(absl::Span<const TensorDef> tensors,
                                       const Placement& placement,
                                       absl::Span<const TableDef> tables) {
  for (const Codec* const codec : {codec_, pull_codec_}) {
    if (tables.empty() || codec == nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "codec '", codec->name(), "': the model has a table, '",
        tables.front().name(), "', whose rows are float32; wanted no codec"));
  }
  return shards_.SetModel(tensors, placement, tables);
}

void ParameterClient::SetEpoch(int64_t model_epoch,
                               absl::Span<const uint64_t> ps_incarnations) {
  const bool is_new = shards_.SetEpoch(model_epoch, ps_incarnations);
  if (is_new && encoder_ != nullptr) encoder_->Clear();
}

void ParameterClient::KeepVersions(
    std::shared_ptr<const PulledVersions> versions) {
  absl::MutexLock lock(&mu_);
  // Those of another epoch would be no good to the next push.
  if (shards_.model() == versions->model) {
    pulled_versions_ = std::move(versions);
  }
}

// ---- Pulls --------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Pull>> ParameterClient::MakePull(
    absl::Span<const MutableTensorView> into, const StepToken& token,
    const Codec* codec) const {
  Pull::Options pull;
  pull.model = shards_.model();
  RETURN_IF_ERROR(Annotate(pull.model->CheckViews(into), "pull"));
  pull.token = token;
  pull.codec = codec;
  pull.into.assign(into.begin(), into.end());
  pull.clock = &shards_.clock();
  return std::make_unique<Pull>(std::move(pull));
}

void ParameterClient::StartPull(Pull* pull,
                                std::function<void(absl::Status)> done) {
  pull->Start(shards_.Start(
      PartBytes(pull->model().plan), ShardGroup::PartsAre::kOpen,
      [this, pull](Transfer* transfer, const TransferWindow::Send& send) {
        pull->Send(&shards_.link(send.shard), transfer, send);
      },
      [this, pull, done = std::move(done)](const absl::Status& outcome,
                                           int64_t) {
        if (outcome.ok()) KeepVersions(pull->versions());
        const absl::Status end = Annotate(outcome, "pull");
        // Then who waits may destroy it.
        pull->End(end);
        done(end);
      }));
}

absl::StatusOr<std::unique_ptr<Pull>> ParameterClient::BeginPull(
    absl::Span<const MutableTensorView> into, const StepToken& token) {
  ASSIGN_OR_RETURN(std::unique_ptr<Pull> pull,
                   MakePull(into, token, pull_codec_));
  StartPull(pull.get(), [](const absl::Status&) {});
  return pull;
}

absl::StatusOr<std::unique_ptr<Pull>> ParameterClient::BeginPullInPlace(
    const StepToken& token) {
  Pull::Options options;
  options.model = shards_.model();
  options.token = token;
  options.in_place = true;
  options.clock = &shards_.clock();
  auto pull = std::make_unique<Pull>(std::move(options));
  StartPull(pull.get(), [](const absl::Status&) {});
  return pull;
}

absl::Status ParameterClient::PullAndWait(
    absl::Span<const MutableTensorView> into, const StepToken& token) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Pull> pull,
                   MakePull(into, token, /*codec=*/nullptr));
  StartPull(pull.get(), [](const absl::Status&) {});
  return pull->Finish();
}

void ParameterClient::PullThen(absl::Span<const MutableTensorView> into,
                               const StepToken& token,
                               std::function<void(absl::Status)> done) {
  absl::StatusOr<std::unique_ptr<Pull>> made =
      MakePull(into, token, /*codec=*/nullptr);
  if (!made.ok()) return done(made.status());
  std::shared_ptr<Pull> pull = *std::move(made);
  StartPull(pull.get(),
            [pull, done = std::move(done)](const absl::Status& end) mutable {
              done(end);
              pull.reset();
            });
}

absl::StatusOr<std::vector<int64_t>> ParameterClient::PullRows(
    absl::Span<const TableRows> rows, const StepToken& token) {
  ASSIGN_OR_RETURN(PulledRows pulled, PullTableRows(&shards_, rows, token));
  absl::MutexLock lock(&mu_);
  pulled_row_bytes_ += pulled.bytes;
  return std::move(pulled.versions);
}

// ---- Pushes -------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Push>> ParameterClient::MakePush(
    int64_t step, int64_t round, absl::Span<const TensorView> gradients,
    absl::Span<const MutableTensorView> into,
    std::shared_ptr<const PulledVersions> versions, const RowPush& rows) {
  Push::Options push;
  push.model = shards_.model();
  if (versions == nullptr) {
    absl::MutexLock lock(&mu_);
    versions = pulled_versions_;
  }
  const std::string what = PushName(step);
  push.rows_alone = gradients.empty() && !rows.rows.empty() && round == 0;
  if (!push.rows_alone) {
    RETURN_IF_ERROR(Annotate(push.model->CheckGradients(gradients), what));
  }
  if (!into.empty()) {
    RETURN_IF_ERROR(Annotate(push.model->CheckViews(into), what));
    push.into.assign(into.begin(), into.end());
    push.values_codec = pull_codec_;
  }
  if (versions == nullptr || versions->model != push.model) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": nothing was pulled in this model epoch"));
  }
  push.versions = versions->parts;
  RETURN_IF_ERROR(Annotate(AddRows(rows, &push), what));
  push.gradients.assign(gradients.begin(), gradients.end());
  push.step = step;
  push.round = round;
  push.counts = PopCounts();
  push.learning_rate_factor = learning_rate_factor();
  push.clock = &shards_.clock();
  if (encoder_ != nullptr) {
    push.encoder = encoder_.get();
    push.encoded = encoder_->Begin(step, *push.model, push.gradients);
  }
  return std::make_unique<Push>(std::move(push));
}

absl::StatusOr<std::unique_ptr<Push>> ParameterClient::BeginPush(
    int64_t step, int64_t round, absl::Span<const TensorView> gradients,
    absl::Span<const MutableTensorView> into,
    std::shared_ptr<const PulledVersions> versions, const RowPush& rows) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<Push> made,
      MakePush(step, round, gradients, into, std::move(versions), rows));
  made->Start(
      StartPush(made.get(), made->PartBytes(), ShardGroup::PartsAre::kClosed));
  return made;
}

void ParameterClient::Resume(Push* push) {
  push->Start(StartPush(push, push->Resume(), ShardGroup::PartsAre::kOpen));
}

std::shared_ptr<Transfer> ParameterClient::StartPush(
    Push* push, const std::vector<std::vector<int64_t>>& part_bytes,
    ShardGroup::PartsAre parts) {
  return shards_.Start(
      part_bytes, parts,
      [this, push](Transfer* transfer, const TransferWindow::Send& send) {
        push->Send(&shards_.link(send.shard), transfer, send);
      },
      [this, push](const absl::Status& outcome, int64_t retries) {
        absl::StatusOr<PushResult> result =
            push->Conclude(Annotate(outcome, PushName(push->step())), retries);
        if (result.ok() && result->new_versions != nullptr) {
          KeepVersions(result->new_versions);
        }
        push->End(std::move(result));
      });
}

void ParameterClient::SettlePush(const StepToken& token) {
  if (encoder_ == nullptr || token.round() == 0) return;
  encoder_->Settle(token.chosen_step());
}

absl::StatusOr<PushResult> ParameterClient::PushAndWait(
    int64_t step, absl::Span<const TensorView> gradients, int64_t round,
    absl::Span<const MutableTensorView> into, const RowPush& rows) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Push> push,
                   BeginPush(step, round, gradients, into,
                             /*versions=*/nullptr, rows));
  return push->Finish();
}

// ---- Parameters in place ------------------------------------------------

absl::StatusOr<ParametersInPlace> ParameterClient::MapParameters(
    InPlaceOrder order) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  RETURN_IF_ERROR(model->CheckHasNoTables("parameters in place"));
  if (!model->sender.namespace_().empty()) {
    return absl::FailedPreconditionError(
        "map the parameters: only the default namespace's can be read in "
        "place");
  }
  const ShardPlaces placed = PlaceOnShards(*model, shards_.size());
  ParametersInPlace in_place;
  in_place.memory.resize(shards_.size());
  for (int shard = 0; shard < shards_.size(); ++shard) {
    const int64_t bytes = placed.places[shard].size_bytes();
    if (bytes == 0) continue;
    absl::StatusOr<std::shared_ptr<const char>> memory =
        shards_.link(shard).MapParameters(model->fences[shard], bytes);
    RETURN_IF_ERROR(
        Annotate(AbortedIfFenced(memory.status()), shards_.name(shard)));
    in_place.memory[shard] = *std::move(memory);
  }
  for (size_t i = 0; i < model->tensors.size(); ++i) {
    RETURN_IF_ERROR(Annotate(
        AddValues(*model, static_cast<int>(i), placed.begins[i], &in_place),
        "map the parameters"));
  }
  if (order == InPlaceOrder::kNone) RETURN_IF_ERROR(shards_.SetInPlace(model));
  return in_place;
}

absl::Status ParameterClient::KeepOnDevice(DeviceParameters* holder) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  RETURN_IF_ERROR(model->CheckHasNoTables("parameters on a device"));
  if (shards_.size() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("hold the parameters: they are on ", shards_.size(),
                     " ps tasks, wanted one"));
  }
  RETURN_IF_ERROR(Annotate(model->CheckIsWhole(), "hold the parameters"));
  const absl::Status held = shards_.link(0).KeepOnDevice(
      model->sender, model->fences.front(), holder);
  RETURN_IF_ERROR(Annotate(AbortedIfFenced(held), shards_.name(0)));
  return shards_.SetInPlace(model);
}

absl::StatusOr<PushResult> ParameterClient::UpdateOnDevice(
    int64_t step, const PulledVersions& versions) {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  const std::string what = absl::StrCat("update of step ", step);
  if (versions.model != model) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": its values are of another model epoch"));
  }
  PushPart request;
  model->FillHead(0, &request);
  request.set_step(step);
  request.set_parts(1);
  // They were all pulled at once.
  const int64_t pulled = VersionOf(versions);
  request.set_pulled_version(pulled);
  *request.mutable_counts() = PopCounts();
  request.set_learning_rate_factor(learning_rate_factor());
  const absl::StatusOr<PushReply> reply =
      shards_.link(0).UpdateOnDevice(request);
  RETURN_IF_ERROR(Annotate(AbortedIfFenced(reply.status()),
                           absl::StrCat(what, ": ", shards_.name(0))));
  PushResult result;
  result.max_staleness = reply->staleness();
  result.mean_staleness = static_cast<double>(reply->staleness());
  result.duplicate_parts = reply->duplicate() ? 1 : 0;
  result.pulled_versions = {pulled};
  auto brought = std::make_shared<PulledVersions>(versions);
  for (int64_t& part : brought->parts.front()) part = reply->version();
  result.new_versions = brought;
  KeepVersions(std::move(brought));
  return result;
}

absl::StatusOr<std::shared_ptr<const PulledVersions>>
ParameterClient::PullVersions() {
  const auto versions = std::make_shared<PulledVersions>();
  versions->model = shards_.model();
  const ClientModel& of = *versions->model;
  absl::StatusOr<std::vector<Frame<PullReply>>> replies =
      shards_.CallAll<Frame<PullReply>>(
          [&](int shard, absl::Time deadline,
              ReplyCallback<Frame<PullReply>> done) {
            PullRequest request;
            of.FillHead(shard, &request);
            shards_.link(shard).Pull(request, deadline, std::move(done));
          });
  RETURN_IF_ERROR(Annotate(replies.status(), "pull of versions"));
  for (int shard = 0; shard < shards_.size(); ++shard) {
    versions->parts.emplace_back(of.plan.parts[shard].size(),
                                 (*replies)[shard].header.version());
  }
  KeepVersions(versions);
  return versions;
}

}  // namespace muster
