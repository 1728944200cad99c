#ifndef WORKER_INPUT_FILE_TF_EXAMPLE_H_
#define WORKER_INPUT_FILE_TF_EXAMPLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/example.pb.h"

namespace muster {

// A tf.Example, of which features are read by name. One object serves record
// after record. Not thread-safe.
//   RETURN_IF_ERROR(example.Parse(record));
//   RETURN_IF_ERROR(example.ReadFloats("image", absl::MakeSpan(pixels)));
//   ASSIGN_OR_RETURN(const int64_t label, example.Integer("label"));
// Errors of all that read a feature: InvalidArgument, with its name, what was
// wanted and what was found (no such feature: those that there are; another
// kind; another number of values).
class TfExample {
 public:
  // Errors: DataLoss (not a tf.Example).
  absl::Status Parse(absl::string_view record);

  // Fills `dst` with a feature of dst.size() floats or integers.
  absl::Status ReadFloats(const std::string& name, absl::Span<float> dst) const;

  // Fills `dst` with a feature of dst.size() integers.
  absl::Status ReadIntegers(const std::string& name,
                            absl::Span<int64_t> dst) const;

  // The one integer of a feature.
  absl::StatusOr<int64_t> Integer(const std::string& name) const;

  // The one string of a feature: an image, a text, raw pixels. Valid until
  // Parse is called.
  absl::StatusOr<absl::string_view> Bytes(const std::string& name) const;

  // The kind of a feature's values, to choose among the above.
  absl::StatusOr<Feature::KindCase> Kind(const std::string& name) const;

 private:
  absl::StatusOr<const Feature*> Find(const std::string& name) const;

  Example example_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_TF_EXAMPLE_H_
