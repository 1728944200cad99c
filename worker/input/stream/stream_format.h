#ifndef WORKER_INPUT_STREAM_STREAM_FORMAT_H_
#define WORKER_INPUT_STREAM_STREAM_FORMAT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/registry.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/stream/example_stream.h"

namespace muster {

// How the files of one type are read one record after the other. Reading is for
// one thread, Decode for many.
class StreamFormat {
 public:
  virtual ~StreamFormat() = default;

  // Goes on with another file. Errors, with its name.
  virtual absl::Status Open(const std::string& path) = 0;
  // Fills in bytes, place and bad; false at the end of the file. Errors: as
  // ExampleStream::Next.
  virtual absl::StatusOr<bool> Next(StreamRecord* record) = 0;
  // The unit of StreamRecord::place: "line".
  virtual absl::string_view place_name() const = 0;

  // Writes a record that is not bad, before input.map. REQUIRES: Open was
  // called. Errors, without the place: InvalidArgument, DataLoss.
  virtual absl::Status Decode(const StreamRecord& record,
                              const ExampleMemory& into) const = 0;
};

struct StreamType {
  // The ends of the files' names.
  std::vector<std::string> endings;
  // Errors: InvalidArgument naming the field of the request.
  absl::StatusOr<std::unique_ptr<StreamFormat>> (*create)(
      const DataSetRequest& request) = nullptr;
};

struct StreamTag {
  static constexpr char kKind[] = "stream";
};

// The types of `input.type` that can be streams, by their names; they are
// listed in streams.bzl.
using StreamRegistry = Registry<StreamTag, StreamType>;

}  // namespace muster

#endif  // WORKER_INPUT_STREAM_STREAM_FORMAT_H_
