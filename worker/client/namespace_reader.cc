#include "worker/client/namespace_reader.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/cord_bytes.h"
#include "common/base/status_macros.h"
#include "common/config/namespace_name.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

// A run of a tensor, in one part, and the bytes in memory where it goes.
struct Run {
  int64_t offset = 0;
  int64_t length = 0;
};

// runs[ps task][part]
using Runs = std::vector<std::vector<Run>>;

constexpr int64_t kElementBytes = sizeof(float);
constexpr int64_t kMostElements = kMaxPartBytes / kElementBytes;

bool Knows(const ListNamespacesReply& list, const std::string& space) {
  return absl::c_any_of(list.namespaces(),
                        [&space](const NamespaceState& known) {
                          return known.namespace_() == space;
                        });
}

absl::Status CopyRun(const absl::StatusOr<Frame<PullReply>>& reply,
                     const Run& run, float* dst) {
  RETURN_IF_ERROR(reply.status());
  const int64_t wanted = run.length * kElementBytes;
  if (static_cast<int64_t>(reply->data.size()) != wanted) {
    return absl::InternalError(
        absl::StrCat("asked for ", wanted, " bytes, got ", reply->data.size()));
  }
  CopyCord(reply->data, reinterpret_cast<char*>(dst + run.offset));
  return absl::OkStatus();
}

// A part a run.
Runs RunsOf(const std::vector<TensorExtent>& extents, int num_ps) {
  Runs runs(num_ps);
  for (const TensorExtent& extent : extents) {
    for (int64_t at = extent.begin; at < extent.end(); at += kMostElements) {
      runs[extent.ps].push_back(
          {at, std::min(kMostElements, extent.end() - at)});
    }
  }
  return runs;
}

std::vector<std::vector<int64_t>> BytesOf(const Runs& runs) {
  std::vector<std::vector<int64_t>> bytes(runs.size());
  for (size_t ps = 0; ps < runs.size(); ++ps) {
    for (const Run& run : runs[ps]) {
      bytes[ps].push_back(run.length * kElementBytes);
    }
  }
  return bytes;
}

}  // namespace

absl::Status NamespaceReader::CheckIsThere(
    const std::string& space, const std::vector<ListNamespacesReply>& lists) {
  const auto knows = [&space](const ListNamespacesReply& list) {
    return Knows(list, space);
  };
  if (absl::c_any_of(lists, knows)) return absl::OkStatus();
  std::set<std::string> names;
  for (const ListNamespacesReply& list : lists) {
    for (const NamespaceState& known : list.namespaces()) {
      if (known.shard().phase() != EMPTY) {
        names.insert(absl::StrCat("'", known.namespace_(), "'"));
      }
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(QuotedNamespace(space), " is not on the ps tasks; ",
                   names.empty() ? "none there has a model"
                                 : absl::StrCat("with a model are there: ",
                                                absl::StrJoin(names, ", "))));
}

absl::StatusOr<NamespaceReader> NamespaceReader::Open(
    ShardGroup* shards, const std::string& space) {
  ASSIGN_OR_RETURN(const std::vector<ListNamespacesReply> lists,
                   shards->CallAll<ListNamespacesReply>(
                       [&](int ps, absl::Time deadline,
                           ReplyCallback<ListNamespacesReply> done) {
                         shards->link(ps).Call(kListNamespacesCall,
                                               ListNamespacesRequest(),
                                               deadline, std::move(done));
                       }));
  RETURN_IF_ERROR(CheckIsThere(space, lists));
  NamespaceReader reader(shards, space);
  StateRequest request;
  request.set_namespace_(space);
  request.set_with_definitions(true);
  ASSIGN_OR_RETURN(
      const std::vector<ShardState> states,
      shards->CallAll<ShardState>([&](int ps, absl::Time deadline,
                                      ReplyCallback<ShardState> done) {
        if (!Knows(lists[ps], space)) return done(ShardState());
        shards->link(ps).Call(kStateCall, request, deadline, std::move(done));
      }));
  for (size_t ps = 0; ps < states.size(); ++ps) {
    RETURN_IF_ERROR(reader.Add(static_cast<int>(ps), states[ps]));
  }
  RETURN_IF_ERROR(reader.CheckWhole());
  // All of them are on every ps task.
  for (const TableState& table : states.front().tables()) {
    reader.tables_.push_back(table.definition().name());
  }
  return reader;
}

absl::Status NamespaceReader::Add(int ps, const ShardState& state) {
  if (ps == 0) model_epoch_ = state.model_epoch();
  if (state.phase() != READY || state.model_epoch() != model_epoch_) {
    return absl::FailedPreconditionError(absl::StrCat(
        QuotedNamespace(space_), " has no whole model: ", shards_.name(ps),
        " is ", ShardPhase_Name(state.phase()), " at epoch ",
        state.model_epoch(), ", ", shards_.name(0), " at epoch ", model_epoch_,
        "; wait until its training runs"));
  }
  for (const TensorDef& piece : state.definitions()) {
    const auto known =
        absl::c_find_if(tensors_, [&piece](const TensorDef& tensor) {
          return tensor.name() == piece.name();
        });
    const auto tensor = static_cast<size_t>(known - tensors_.begin());
    if (known == tensors_.end()) {
      tensors_.push_back(piece);
      tensors_.back().clear_extent();
      placement_.emplace_back();
    }
    int64_t elements = 1;
    for (const int64_t dim : piece.shape()) elements *= dim;
    const bool is_all = !piece.has_extent();
    placement_[tensor].push_back({ps, is_all ? 0 : piece.extent().begin(),
                                  is_all ? elements : piece.extent().length()});
  }
  return absl::OkStatus();
}

absl::Status NamespaceReader::CheckWhole() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    int64_t missing = 1;
    for (const int64_t dim : tensors_[i].shape()) missing *= dim;
    for (const TensorExtent& extent : placement_[i]) missing -= extent.length;
    if (missing == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        QuotedNamespace(space_), " has not all of '", tensors_[i].name(),
        "' on these ps tasks: ", missing, " elements are elsewhere"));
  }
  return absl::OkStatus();
}

absl::Status NamespaceReader::Read(int tensor, absl::Span<float> dst) const {
  const std::shared_ptr<const ClientModel> model = shards_.model();
  const Runs runs = RunsOf(placement_[tensor], shards_.size());
  return shards_.Run(
      BytesOf(runs), [&](Transfer* transfer, const TransferWindow::Send& send) {
        const Run run = runs[send.shard][send.part];
        PullRequest request;
        model->FillHead(send.shard, &request);
        request.mutable_fence()->set_model_epoch(model_epoch_);
        request.set_from_namespace(space_);
        TensorSlice& slice = *request.add_slices();
        slice.set_tensor(tensors_[tensor].name());
        slice.set_offset(run.offset);
        slice.set_length(run.length);
        shards_.link(send.shard)
            .Pull(request, send.deadline,
                  [run, send, to = dst.data(),
                   shared = transfer->shared_from_this()](
                      const absl::StatusOr<Frame<PullReply>>& reply) {
                    if (!shared->Hold()) return;
                    shared->Answer(send, CopyRun(reply, run, to));
                    shared->Release();
                  });
      });
}

}  // namespace muster
