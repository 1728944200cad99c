#include "worker/client/row_pull.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/client/client_model.h"
#include "worker/client/row_parts.h"

namespace muster {
namespace {

absl::StatusOr<RowParts> CutPull(const ClientModel& model,
                                 absl::Span<const TableRows> rows) {
  std::vector<RowParts::Ids> ids;
  for (const TableRows& of : rows) ids.push_back({of.table, of.ids});
  RowParts::Options options;
  options.may_repeat = true;
  ASSIGN_OR_RETURN(RowParts parts, RowParts::Cut(model, ids, options));
  for (const TableRows& of : rows) {
    RETURN_IF_ERROR(
        model.CheckRows(of.table, "values", of.ids.size(), of.values.size()));
  }
  return parts;
}

// One pull of rows under way. Its memory is there until the transfer's end.
class RowPull {
 public:
  RowPull(const ClientModel& model, RowParts parts,
          absl::Span<const TableRows> rows, const StepToken& token)
      : model_(model),
        parts_(std::move(parts)),
        rows_(rows),
        token_(token),
        versions_(parts_.PartBytes()) {}

  const RowParts& parts() const { return parts_; }

  // Asks for one part over `link`; Transfer::SendFunction.
  void Send(ParameterLink* link, Transfer* transfer,
            const TransferWindow::Send& send) {
    Frame<PullRowsRequest> request;
    model_.FillHead(send.shard, &request.header);
    if (token_.round() != 0) *request.header.mutable_token() = token_;
    const RowParts::Part& part = parts_.of(send.shard)[send.part];
    parts_.FillRuns(part, request.header.mutable_rows());
    request.data = parts_.DataOf(part);
    link->PullRows(std::move(request), send.deadline,
                   [this, send, shared = transfer->shared_from_this()](
                       const absl::StatusOr<Frame<PullRowsReply>>& reply) {
                     // After the end the memory is the caller's again, and this
                     // gone.
                     if (!shared->Hold()) return;
                     shared->Answer(send, reply.ok() ? Receive(send, *reply)
                                                     : reply.status());
                     shared->Release();
                   });
  }

  // After the end.
  PulledRows Result() const {
    PulledRows pulled;
    pulled.bytes = parts_.bytes();
    for (const std::vector<int64_t>& of : versions_) {
      pulled.versions.push_back(
          of.empty() ? kNotAsked : *std::min_element(of.begin(), of.end()));
    }
    return pulled;
  }

 private:
  absl::Status Receive(const TransferWindow::Send& send,
                       const Frame<PullRowsReply>& reply) {
    RETURN_IF_ERROR(
        parts_.Scatter(parts_.of(send.shard)[send.part], reply.data, rows_));
    versions_[send.shard][send.part] = reply.header.version();
    return absl::OkStatus();
  }

  const ClientModel& model_;
  const RowParts parts_;
  const absl::Span<const TableRows> rows_;
  const StepToken& token_;
  // Each is written by the answer to its part.
  std::vector<std::vector<int64_t>> versions_;
};

}  // namespace

void AddRowVersions(absl::Span<const int64_t> versions,
                    std::vector<int64_t>* all) {
  all->resize(versions.size(), kNotAsked);
  for (size_t ps = 0; ps < versions.size(); ++ps) {
    int64_t& oldest = (*all)[ps];
    if (versions[ps] == kNotAsked) continue;
    if (oldest == kNotAsked || versions[ps] < oldest) oldest = versions[ps];
  }
}

absl::StatusOr<PulledRows> PullTableRows(ShardGroup* shards,
                                         absl::Span<const TableRows> rows,
                                         const StepToken& token) {
  const std::shared_ptr<const ClientModel> model = shards->model();
  absl::StatusOr<RowParts> parts = CutPull(*model, rows);
  RETURN_IF_ERROR(Annotate(parts.status(), "pull"));
  RowPull pull(*model, *std::move(parts), rows, token);
  RETURN_IF_ERROR(Annotate(
      shards->Run(pull.parts().PartBytes(),
                  [&](Transfer* transfer, const TransferWindow::Send& send) {
                    pull.Send(&shards->link(send.shard), transfer, send);
                  }),
      "pull of rows"));
  return pull.Result();
}

}  // namespace muster
