#include "worker/client/client.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement.h"
#include "common/cluster/placement_strategy.h"
#include "common/cluster/task_id.h"
#include "common/rpc/credentials.h"
#include "common/rpc/incarnation.h"
#include "common/rpc/protocol.h"
#include "common/rpc/server/listen_address.h"
#include "common/tensor/shape.h"
#include "worker/client/client_model.h"
#include "worker/client/link/blocking_call.h"
#include "worker/client/link/shard_link.h"
#include "worker/client/model_fingerprint.h"
#include "worker/client/row_pull.h"
#include "worker/client/summed_rows.h"

namespace muster {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(100);

std::string PsName(int ps_task) {
  return TaskName(MakeTaskId(kPsJob, ps_task));
}

ParameterClient::Options ClientOptions(const Client::Options& options) {
  ParameterClient::Options client;
  *client.sender.mutable_task() = MakeTaskId(kWorkerJob, options.worker_index);
  client.sender.set_incarnation(NewIncarnation());
  for (size_t i = 0; i < options.ps_addresses.size(); ++i) {
    client.ps_names.push_back(PsName(static_cast<int>(i)));
  }
  client.transfer.seed = client.sender.incarnation();
  client.clock = options.clock;
  return client;
}

// A peer that is not there (yet), as opposed to one that refuses: one that has
// no room for another task (ResourceExhausted) will not soon have it.
bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

bool Never(const bool* value) { return *value; }

std::vector<TensorView> ViewsOf(
    absl::Span<const absl::Span<const float>> spans) {
  std::vector<TensorView> views;
  for (const auto values : spans) views.push_back(ViewOf(values));
  return views;
}

std::vector<MutableTensorView> ViewsOf(
    absl::Span<const absl::Span<float>> spans) {
  std::vector<MutableTensorView> views;
  for (const auto values : spans) views.push_back(MutableViewOf(values));
  return views;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    const Options& options, absl::Span<const Tensor> tensors) {
  absl::StatusOr<std::unique_ptr<TaskKeys>> keys = KeysOfTask(
      options.certs_dir, MakeTaskId(kWorkerJob, options.worker_index),
      options.reporter, options.clock);
  RETURN_IF_ERROR(keys.status());
  const TaskCredentials credentials = CredentialsOf(keys->get());
  std::vector<std::unique_ptr<ParameterLink>> links;
  for (size_t i = 0; i < options.ps_addresses.size(); ++i) {
    const std::string& address = options.ps_addresses[i];
    const TaskId ps = MakeTaskId(kPsJob, static_cast<int>(i));
    RETURN_IF_ERROR(CheckConnectAddress(
        address, options.allow_insecure_network || credentials.proves_callers));
    links.push_back(MakeShardLink({{TaskName(ps), address}, ps}, credentials,
                                  options.link, options.reporter,
                                  options.clock));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                   Create(options, tensors, std::move(links)));
  client->keys_ = *std::move(keys);
  return client;
}

absl::StatusOr<std::unique_ptr<Client>> Client::Create(
    const Options& options, absl::Span<const Tensor> tensors,
    std::vector<std::unique_ptr<ParameterLink>> links) {
  if (options.ps_addresses.empty() ||
      links.size() != options.ps_addresses.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a model on ps tasks wants at least one ps address, and a link for "
        "each; found ",
        options.ps_addresses.size(), " addresses and ", links.size(),
        " links"));
  }
  if (options.worker_index < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker_index: wanted 0 or more, found ", options.worker_index));
  }
  ParameterClient::Options client = ClientOptions(options);
  const Sender sender = client.sender;
  auto model = absl::WrapUnique(new Client(
      options, sender,
      std::make_unique<ParameterClient>(std::move(client), std::move(links))));
  RETURN_IF_ERROR(model->SetTensors(tensors));
  RETURN_IF_ERROR(
      model->HelloAll(options.clock->Now() + options.max_wait).status());
  model->StopWaiting();
  return model;
}

Client::Client(Options options, Sender sender,
               std::unique_ptr<ParameterClient> client)
    : options_(std::move(options)),
      sender_(std::move(sender)),
      client_(std::move(client)) {}

absl::Status Client::SetTensors(absl::Span<const Tensor> tensors) {
  if (tensors.empty() && options_.tables.empty()) {
    return absl::InvalidArgumentError(
        "a model wants at least one tensor or table");
  }
  for (const Tensor& tensor : tensors) {
    TensorDef def;
    def.set_name(tensor.name);
    def.set_dtype(FLOAT32);
    for (const int64_t size : tensor.shape) def.add_shape(size);
    const auto shape = Shape::Create(tensor.shape);
    if (!shape.ok()) {
      return Annotate(shape.status(), absl::StrCat("'", tensor.name, "'"));
    }
    sizes_.push_back(shape->num_elements());
    tensors_.push_back(std::move(def));
  }
  const std::vector<TableDef> tables = MakeTables();
  fingerprint_ = ModelFingerprint(tensors_, options_.optimizer, tables);
  ASSIGN_OR_RETURN(
      const Placement placement,
      PlaceTensors(tensors_, client_->num_shards(), options_.placement));
  return client_->SetModel(tensors_, placement, tables);
}

std::vector<TableDef> Client::MakeTables() const {
  std::vector<TableDef> tables;
  for (const Table& table : options_.tables) {
    TableDef& def = tables.emplace_back();
    def.set_name(table.name);
    def.set_dim(table.dim);
    *def.mutable_optimizer() =
        table.optimizer.name().empty() ? options_.optimizer : table.optimizer;
    def.set_initial(table.initial);
    def.set_scale(table.scale);
    def.set_seed(table.seed);
    def.set_max_rows(table.max_rows);
  }
  return tables;
}

HelloRequest Client::MakeHello(int ps_task) const {
  HelloRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = sender_;
  request.set_sender_address(options_.worker_address);
  for (size_t i = 0; i < options_.ps_addresses.size(); ++i) {
    (*request.mutable_ps_addresses())[static_cast<int>(i)] =
        options_.ps_addresses[i];
  }
  request.set_ps_index(ps_task);
  request.set_muster_version(std::string(kMusterVersion));
  return request;
}

absl::StatusOr<HelloReply> Client::Hello(int ps_task) {
  HelloRequest request = MakeHello(ps_task);
  while (true) {
    absl::StatusOr<HelloReply> reply = BlockingCall<HelloReply>(
        *options_.clock,
        [&](auto done) { client_->Hello(ps_task, request, std::move(done)); });
    if (!reply.ok() || reply->takeover() == 0 || request.takeover() != 0) {
      return reply;
    }
    request.set_takeover(reply->takeover());
  }
}

absl::StatusOr<std::vector<HelloReply>> Client::HelloAll(absl::Time deadline) {
  std::vector<HelloReply> replies;
  while (static_cast<int>(replies.size()) < client_->num_shards()) {
    const int ps_task = static_cast<int>(replies.size());
    absl::StatusOr<HelloReply> reply = Hello(ps_task);
    if (reply.ok()) {
      replies.push_back(*std::move(reply));
    } else if (!IsAway(reply.status()) || options_.clock->Now() >= deadline) {
      return Annotate(reply.status(),
                      absl::StrCat("connect to ", PsName(ps_task), " at ",
                                   options_.ps_addresses[ps_task]));
    } else {
      Pause(absl::StrCat(PsName(ps_task), " (", reply.status().message(), ")"));
    }
  }
  return replies;
}

absl::Status Client::Initialize(
    absl::Span<const absl::Span<const float>> values) {
  RETURN_IF_ERROR(CheckSpans(values));
  ASSIGN_OR_RETURN(const std::vector<HelloReply> replies,
                   HelloAll(options_.clock->Now() + options_.max_wait));
  StopWaiting();
  int64_t epoch = 0;
  std::vector<uint64_t> incarnations;
  for (const HelloReply& reply : replies) {
    epoch = std::max(epoch, reply.state().model_epoch());
    incarnations.push_back(reply.ps_incarnation());
  }
  client_->SetEpoch(epoch + 1, incarnations);
  row_versions_.clear();
  ModelDefinition definition;
  definition.fingerprint = fingerprint_;
  definition.optimizer = options_.optimizer;
  definition.replication.mutable_async();
  return client_->chief().LoadModel(definition, ViewsOf(values));
}

std::string Client::Unready(const ShardState& state, int64_t epoch) const {
  if (state.phase() != READY) return "has no model yet";
  if (state.fingerprint() != fingerprint_) {
    return "holds another model (other tensors or another optimizer)";
  }
  if (state.model_epoch() != epoch) return "is being initialized";
  return "";
}

absl::Status Client::WaitForOthersToInitialize() {
  const absl::Time deadline = options_.clock->Now() + options_.max_wait;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<HelloReply> replies, HelloAll(deadline));
    const int64_t epoch = replies[0].state().model_epoch();
    std::vector<uint64_t> incarnations;
    std::string unready;
    for (const HelloReply& reply : replies) {
      const std::string why = Unready(reply.state(), epoch);
      if (unready.empty() && !why.empty()) {
        unready = absl::StrCat(PsName(static_cast<int>(incarnations.size())),
                               " ", why);
      }
      incarnations.push_back(reply.ps_incarnation());
    }
    if (unready.empty()) {
      client_->SetEpoch(epoch, incarnations);
      row_versions_.clear();
      StopWaiting();
      return absl::OkStatus();
    }
    if (options_.clock->Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "wait for another worker to initialize the model: ", unready,
          " after ", absl::FormatDuration(options_.max_wait)));
    }
    Pause(absl::StrCat("another worker to initialize the model: ", unready));
  }
}

absl::Status Client::Pull(absl::Span<const absl::Span<float>> into) {
  RETURN_IF_ERROR(CheckSpans(into));
  return client_->PullAndWait(ViewsOf(into));
}

absl::StatusOr<PushResult> Client::Push(
    absl::Span<const absl::Span<const float>> gradients,
    absl::Span<const RowGradients> rows) {
  RETURN_IF_ERROR(CheckSpans(gradients));
  return PushStep(ViewsOf(gradients), {}, rows);
}

absl::StatusOr<PushResult> Client::PushPull(
    absl::Span<const absl::Span<const float>> gradients,
    absl::Span<const absl::Span<float>> into,
    absl::Span<const RowGradients> rows) {
  RETURN_IF_ERROR(CheckSpans(gradients));
  RETURN_IF_ERROR(CheckSpans(into));
  return PushStep(ViewsOf(gradients), ViewsOf(into), rows);
}

absl::Status Client::CheckRows(int table, size_t ids, size_t values) const {
  const auto tables = static_cast<int>(options_.tables.size());
  if (table < 0 || table >= tables) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows of table ", table, "; the model has ", tables, " tables"));
  }
  const Table& of = options_.tables[table];
  if (values == ids * static_cast<size_t>(of.dim)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("rows of '", of.name, "': ", ids, " ids and ", values,
                   " values; wanted ", of.dim, " of these a row"));
}

absl::Status Client::PullRows(int table, absl::Span<const int64_t> ids,
                              absl::Span<float> into) {
  RETURN_IF_ERROR(CheckRows(table, ids.size(), into.size()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> versions,
                   client_->PullRows({{table, ids, into}}));
  AddRowVersions(versions, &row_versions_);
  return absl::OkStatus();
}

absl::StatusOr<PushResult> Client::PushRows(int table,
                                            absl::Span<const int64_t> ids,
                                            absl::Span<const float> gradients) {
  return PushStep({}, {}, {{table, ids, gradients}});
}

absl::StatusOr<PushResult> Client::PushStep(
    absl::Span<const TensorView> gradients,
    absl::Span<const MutableTensorView> into,
    absl::Span<const RowGradients> rows) {
  std::vector<SummedRows> summed(rows.size());
  std::vector<RowGradients> sums;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowGradients& of = rows[i];
    RETURN_IF_ERROR(CheckRows(of.table, of.ids.size(), of.gradients.size()));
    summed[i] =
        SumEqualIds(of.ids, of.gradients, options_.tables[of.table].dim);
    sums.push_back({of.table, summed[i].ids, summed[i].gradients});
  }
  return PushSummed(gradients, into, sums);
}

absl::StatusOr<PushResult> Client::PushSummed(
    absl::Span<const TensorView> gradients,
    absl::Span<const MutableTensorView> into,
    absl::Span<const RowGradients> rows) {
  const absl::Time deadline = options_.clock->Now() + options_.max_wait;
  const std::vector<int64_t> versions = std::exchange(row_versions_, {});
  ASSIGN_OR_RETURN(const std::unique_ptr<muster::Push> push,
                   client_->BeginPush(++step_, /*round=*/0, gradients, into,
                                      /*versions=*/nullptr, {rows, versions}));
  while (true) {
    absl::StatusOr<PushResult> result = push->Finish();
    if (!push->may_resume() || options_.clock->Now() >= deadline) return result;
    client_->Resume(push.get());
  }
}

void Client::StopWaiting() {
  if (waiting_.Stop()) options_.reporter.Info("no longer waiting");
}

void Client::Pause(const std::string& what) {
  const std::string line = waiting_.WaitFor(what, options_.clock->Now());
  if (!line.empty()) options_.reporter.Info(line);
  const bool never = false;
  absl::MutexLock lock(&mu_);
  options_.clock->Await(&mu_, absl::Condition(&Never, &never), kPause);
}

template <typename T>
absl::Status Client::CheckSpans(absl::Span<const absl::Span<T>> spans) const {
  if (spans.size() != sizes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted one span for each of the ", sizes_.size(),
                     " tensors, found ", spans.size()));
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    if (static_cast<int64_t>(spans[i].size()) != sizes_[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", tensors_[i].name(), "' has ", sizes_[i],
                       " elements, but the span has ", spans[i].size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
