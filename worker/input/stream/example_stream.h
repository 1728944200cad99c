#ifndef WORKER_INPUT_STREAM_EXAMPLE_STREAM_H_
#define WORKER_INPUT_STREAM_EXAMPLE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "proto/data_schema.pb.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/data_set/part.h"

namespace muster {

class ExampleColumns;

// One example as it was read and before it is decoded. Its memory is used again
// for another.
struct StreamRecord : Record {
  // Its number among those of its pass, from 0.
  int64_t row = 0;
  // Its file, or pair of files.
  size_t file = 0;
  // How its columns make an example, the stream's; null: nothing shows it.
  const ExampleColumns* columns = nullptr;
};

// Examples that come one after the other: how many there are is not known, and
// none can be asked for by its number. Reading is for one thread, decoding for
// many.
//
//   RETURN_IF_ERROR(stream->Begin());
//   while (true) {
//     ASSIGN_OR_RETURN(const bool more, stream->Next(&record));
//     if (!more) break;
//     RETURN_IF_ERROR(stream->Decode(record, epoch, into));
//   }
class ExampleStream {
 public:
  virtual ~ExampleStream() = default;

  // The shape of one example, as the model wants it.
  virtual const Shape& example_shape() const = 0;
  // The targets of a row; 0 if it has a class.
  virtual int64_t num_targets() const = 0;
  // As DataSet's.
  virtual bool has_weights() const { return false; }
  // What the rows are, as far as they were read; it has no map.
  virtual DataSchema Schema() const { return {}; }
  // The paths that it is read from.
  virtual std::vector<std::string> Files() const = 0;
  // As DataSet's.
  virtual std::vector<std::string> Remarks() const { return {}; }

  // Goes back to the first record: a pass begins, with the same records in the
  // same order as each time. Errors: those of the files.
  virtual absl::Status Begin() = 0;
  // Reads the next record; false at the end of the pass. Errors: those after
  // which there is no next record (a file that cannot be read, or is cut
  // short).
  virtual absl::StatusOr<bool> Next(StreamRecord* record) = 0;

  // Writes the example of a record, as input.map makes it in `epoch`.
  // Thread-safe. Errors, with file and place: the record's own; InvalidArgument
  // (not as the model reads it).
  virtual absl::Status Decode(const StreamRecord& record, int64_t epoch,
                              const ExampleMemory& into) const = 0;
};

// Opens the same stream each time.
using OpenStream =
    std::function<absl::StatusOr<std::unique_ptr<ExampleStream>>()>;

}  // namespace muster

#endif  // WORKER_INPUT_STREAM_EXAMPLE_STREAM_H_
