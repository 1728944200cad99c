// What the data of a run are, compared: what may change while the run's model
// keeps its meaning, and what may not.
#ifndef WORKER_INPUT_DATA_SET_DATA_SCHEMA_H_
#define WORKER_INPUT_DATA_SET_DATA_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "proto/data_schema.pb.h"
#include "proto/training.pb.h"

namespace muster {

// DataSchema::format of a program's own data, of which only rows are known.
inline constexpr char kProgramFormat[] = "program";
// DataLabel::kind.
inline constexpr char kClassLabel[] = "class";
inline constexpr char kTargetsLabel[] = "targets";
inline constexpr char kNoLabel[] = "none";

// The schema of a run: what was found in its halves, with what `input` says of
// them.
//   seed: chose the rows of input.test_fraction and input.validation_fraction.
DataSchema CompleteSchema(const InputSpec& input, uint64_t seed,
                          DataSchema found);

// Whether a model of `run` may read `now`, which may lack either half and its
// labels. Columns are compared by name, whatever their order; input.map by
// meaning. Errors: InvalidArgument, with the first difference and both sides:
// another input.map or fraction of a half, a column that is missing, or has
// another kind or shape, other labels, a class that the run does not know.
absl::Status CheckSchemaChange(const DataSchema& run, const DataSchema& now);

// Of the stages of input.map alone.
absl::Status CheckMapChange(const DataSchema& run, const DataSchema& now);

// A line for each change that is fine: other rows or files of a half that both
// have, another format.
std::vector<std::string> SchemaRemarks(const DataSchema& run,
                                       const DataSchema& now);

// Whether values of `now` are what those of `run`'s column are. Errors:
// InvalidArgument (another kind or shape), with both sides.
absl::Status CheckColumnChange(const DataColumn& run, const DataColumn& now);

// The names of the classes by number, as the files have them; empty if there
// are none.
std::vector<std::string> ClassNamesOf(const DataSchema& schema);

// A name, and a few of many, fit for a message: "a, b and 7 others".
std::string ShownName(absl::string_view name);
std::string ShownNames(
    const google::protobuf::RepeatedPtrField<std::string>& names);

// "did you mean 'x_2'? there are a, b and 7 others", of names without `wanted`.
std::string OfferNames(
    absl::string_view wanted,
    const google::protobuf::RepeatedPtrField<std::string>& names);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_DATA_SCHEMA_H_
