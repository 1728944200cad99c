#include "worker/checkpoint/namespace_weights.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/namespace_name.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

// The tensors of a shard are float32.
constexpr char kDtype[] = "F32";

// A mistake in the flag is named with it.
absl::Status OfFlag(const absl::Status& status, const std::string& space) {
  if (!absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status)) {
    return status;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--read_from=", space, ": ", status.message()));
}

absl::StatusOr<TensorMatch> Match(const NamespaceReader& reader,
                                  absl::Span<const TensorDef> parameters,
                                  const MatchOptions& options) {
  std::vector<SourceTensor> tensors;
  for (const TensorDef& tensor : reader.tensors()) {
    ASSIGN_OR_RETURN(Shape shape, Shape::Create(tensor.shape()));
    tensors.push_back({tensor.name(), std::move(shape), kDtype});
  }
  return MatchTensors(tensors, parameters, options, "the namespace");
}

}  // namespace

absl::StatusOr<std::string> ReadNamespaceWeights(
    const NamespaceWeights& weights, ParameterClient* client,
    absl::Span<const TensorDef> parameters,
    const std::function<absl::Span<float>(int index)>& values,
    const Reporter& reporter) {
  const std::string& space = *weights.space;
  const absl::StatusOr<NamespaceReader> reader = client->OpenNamespace(space);
  RETURN_IF_ERROR(OfFlag(reader.status(), space));
  const absl::StatusOr<TensorMatch> match =
      Match(*reader, parameters, weights.match);
  RETURN_IF_ERROR(OfFlag(match.status(), space));
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (match->sources[i] < 0) continue;
    RETURN_IF_ERROR(
        reader->Read(match->sources[i], values(static_cast<int>(i))));
  }
  for (const std::string& remark : match->remarks) {
    reporter.Info(absl::StrCat("--read_from: ", remark));
  }
  return absl::StrCat(match->num_tensors(), " of them from ",
                      QuotedNamespace(space), " (model epoch ",
                      reader->model_epoch(), ")");
}

void HelloToReader(const NamespaceWeights& weights, ParameterClient* client,
                   int ps_task, const HelloRequest& request,
                   ReplyCallback<HelloReply> done) {
  client->ListNamespaces(
      ps_task, [&space = *weights.space, client, ps_task, request,
                done = std::move(done)](
                   const absl::StatusOr<ListNamespacesReply>& list) {
        if (!list.ok()) return done(list.status());
        const std::string& own = request.sender().namespace_();
        absl::Status may = NamespaceReader::CheckIsThere(own, {*list});
        if (!may.ok()) may = NamespaceReader::CheckIsThere(space, {*list});
        if (!may.ok()) return done(OfFlag(may, space));
        client->Hello(ps_task, request, done);
      });
}

}  // namespace muster
