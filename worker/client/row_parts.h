#ifndef WORKER_CLIENT_ROW_PARTS_H_
#define WORKER_CLIENT_ROW_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/table.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/table_rows.h"

namespace muster {

// The rows of one call, by the ps task that has them, in parts: ordered by
// table, logical shard and id, which is the same whatever order they were given
// in. The same arguments give the same parts. Holds no values, and refers to
// nothing of the caller's. A value type.
//
//   ASSIGN_OR_RETURN(const RowParts parts, RowParts::Cut(model, ids, options));
//   for (const RowParts::Part& part : parts.of(ps)) {
//     parts.FillRuns(part, request.header.mutable_rows());
//     request.data = parts.DataOf(part);
class RowParts {
 public:
  // Of one table, [n].
  struct Ids {
    int table = 0;
    absl::Span<const int64_t> ids;
  };
  struct Options {
    // What a message has of each row: integers of 8 bytes, the id first, and
    // vectors of `dim` float32.
    int64_t integers = 1;
    int64_t vectors = 1;
    // Whether an id may be there twice; then messages have it once.
    bool may_repeat = false;
    // Each ps has a part, which may have no rows.
    bool every_ps = false;
    // By ps: the most parts; if there would be more they are larger than the
    // way to it wants. Empty: any number.
    std::vector<int64_t> most_parts;
  };
  // An id, and its index among those of its table.
  struct Row {
    int64_t id = 0;
    size_t index = 0;
  };
  // Rows of one table in one part.
  struct Run {
    // The index of its table's ids among those given.
    size_t input = 0;
    // Of rows(), repeated ids among them; and the number of different ones.
    size_t begin = 0;
    size_t end = 0;
    int64_t count = 0;
  };
  struct Part {
    std::vector<Run> runs;
    int64_t bytes = 0;
  };

  // Each table once. Errors: InvalidArgument for a table that is not the
  // model's or comes twice, a repeated id, and more rows than most_parts take.
  static absl::StatusOr<RowParts> Cut(const ClientModel& model,
                                      absl::Span<const Ids> ids,
                                      const Options& options);

  const std::vector<Part>& of(int ps) const { return parts_[ps]; }
  // [ps task][part]
  std::vector<std::vector<int64_t>> PartBytes() const;
  // Of all parts.
  int64_t bytes() const;

  // The rows of a run in their order; a repeated id follows itself.
  absl::Span<const Row> rows(const Run& run) const {
    return absl::MakeConstSpan(rows_).subspan(run.begin, run.end - run.begin);
  }

  // ---- For messages ---------------------------------------------------------

  void FillRuns(const Part& part,
                google::protobuf::RepeatedPtrField<RowRun>* runs) const;
  // One element, of so many bytes, for each of a table's ids as they were
  // given.
  struct Column {
    const void* elements = nullptr;
    size_t element_bytes = 0;
  };
  // The part's data: the ids of all its runs, and then, run by run, the
  // elements of each of the columns of its table; `columns` by index of its
  // ids among those given, empty: ids alone. REQUIRES: ids do not repeat where
  // there are columns.
  absl::Cord DataOf(const Part& part,
                    absl::Span<const std::vector<Column>> columns = {}) const;
  // Writes an answer's values, each run's, to where `into` has them, one of it
  // a table as its ids were given; also those of repeated ids. Errors: Internal
  // if `data` is not as long as the values.
  absl::Status Scatter(const Part& part, const absl::Cord& data,
                       absl::Span<const TableRows> into) const;

 private:
  friend class RowCutter;

  std::vector<Row> rows_;
  std::vector<std::vector<Part>> parts_;
  // By input.
  std::vector<TableDef> tables_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_ROW_PARTS_H_
