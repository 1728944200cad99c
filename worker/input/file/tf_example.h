#ifndef WORKER_INPUT_FILE_TF_EXAMPLE_H_
#define WORKER_INPUT_FILE_TF_EXAMPLE_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/example.pb.h"

namespace muster {

// A tf.Example, of which features are read by name. One object serves record
// after record. Not thread-safe.
//   RETURN_IF_ERROR(example.Parse(record));
//   ASSIGN_OR_RETURN(const TfExample::Values values, example.Get("label"));
class TfExample {
 public:
  // A feature's floats, its integers, or its one string of bytes (an image, a
  // text, raw pixels). Valid until Parse is called.
  using Values = std::variant<absl::Span<const float>,
                              absl::Span<const int64_t>, absl::string_view>;

  // Errors: DataLoss (not a tf.Example).
  absl::Status Parse(absl::string_view record);

  bool Has(const std::string& name) const {
    return example_.features().feature().contains(name);
  }

  // Errors: InvalidArgument with the name (no such feature: those that there
  // are; no values, or several strings).
  absl::StatusOr<Values> Get(const std::string& name) const;

 private:
  Example example_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_TF_EXAMPLE_H_
