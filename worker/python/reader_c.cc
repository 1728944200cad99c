#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/tensor/shape.h"
#include "worker/python/c_call.h"
#include "worker/python/job_reader.h"
#include "worker/python/muster.h"

struct muster_reader {
  std::unique_ptr<muster::JobReader> job;
  // Once they are known.
  std::vector<muster_tensor> tensors;
  std::vector<int64_t> sizes;
  std::vector<const char*> tables;
};

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<muster_reader>> OpenReader(const char* spec) {
  RETURN_IF_ERROR(CheckGiven("spec", spec));
  const SignalsBlocked blocked;
  RETURN_IF_ERROR(SetUpProcess(/*task=*/nullptr));
  auto reader = std::make_unique<muster_reader>();
  ASSIGN_OR_RETURN(reader->job, JobReader::Connect(spec));
  return reader;
}

absl::StatusOr<bool> ReadTensors(muster_reader* reader, int timeout_ms) {
  const SignalsBlocked blocked;
  ASSIGN_OR_RETURN(
      const bool is_there,
      reader->job->Await(absl::Milliseconds(std::max(timeout_ms, 0))));
  if (!is_there || !reader->tensors.empty()) return is_there;
  for (const TensorDef& tensor : reader->job->tensors()) {
    reader->tensors.push_back(
        {tensor.name().c_str(), tensor.shape().data(), tensor.shape_size()});
    reader->sizes.push_back(NumElements(tensor.shape()));
  }
  return true;
}

absl::StatusOr<bool> ReadValues(muster_reader* reader, int timeout_ms,
                                float* const* values) {
  const std::vector<int64_t>& sizes = reader->sizes;
  if (sizes.empty()) {
    return absl::InvalidArgumentError(
        "muster_read_values before muster_read_tensors has given the tensors");
  }
  std::vector<absl::Span<float>> spans;
  for (size_t i = 0; i < sizes.size(); ++i) {
    RETURN_IF_ERROR(
        CheckGiven(absl::StrCat("values[", i, "]").c_str(), values[i]));
    spans.emplace_back(values[i], sizes[i]);
  }
  const SignalsBlocked blocked;
  return reader->job->Read(absl::Milliseconds(std::max(timeout_ms, 0)), spans);
}

// A call that says whether it is done.
template <typename Call>
int ForReader(muster_reader* reader, Call call) {
  bool is_done = false;
  const absl::Status status = Guard([&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGiven("reader", reader));
    ASSIGN_OR_RETURN(is_done, call());
    return absl::OkStatus();
  });
  return status.ok() && !is_done ? MUSTER_NOT_YET : KindOf(status);
}

}  // namespace
}  // namespace muster

extern "C" {

muster_reader* muster_read_open(const char* spec, int* error) {
  std::unique_ptr<muster_reader> reader;
  const absl::Status status = muster::Guard([&] {
    ASSIGN_OR_RETURN(reader, muster::OpenReader(spec));
    return absl::OkStatus();
  });
  if (error != nullptr) *error = muster::KindOf(status);
  return reader.release();
}

int muster_read_tensors(muster_reader* reader, int timeout_ms,
                        const muster_tensor** tensors, int* count) {
  return muster::ForReader(reader, [&]() -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(muster::CheckGiven("tensors", tensors));
    RETURN_IF_ERROR(muster::CheckGiven("count", count));
    ASSIGN_OR_RETURN(const bool is_there,
                     muster::ReadTensors(reader, timeout_ms));
    *tensors = reader->tensors.data();
    *count = static_cast<int>(reader->tensors.size());
    return is_there;
  });
}

int muster_read_values(muster_reader* reader, int timeout_ms,
                       float* const* values) {
  return muster::ForReader(reader, [&]() -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(muster::CheckGiven("values", values));
    return muster::ReadValues(reader, timeout_ms, values);
  });
}

int muster_read_tables(muster_reader* reader, const char* const** names,
                       int* count) {
  return muster::ForReader(reader, [&]() -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(muster::CheckGiven("names", names));
    RETURN_IF_ERROR(muster::CheckGiven("count", count));
    reader->tables.clear();
    for (const std::string& name : reader->job->tables()) {
      reader->tables.push_back(name.c_str());
    }
    *names = reader->tables.data();
    *count = static_cast<int>(reader->tables.size());
    return true;
  });
}

int muster_read_close(muster_reader* reader) {
  return muster::ForReader(reader, [&]() -> absl::StatusOr<bool> {
    delete reader;
    return true;
  });
}

}  // extern "C"
