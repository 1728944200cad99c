#ifndef TESTS_WORKER_BACKEND_NO_PRIMITIVE_H_
#define TESTS_WORKER_BACKEND_NO_PRIMITIVE_H_

#include "absl/status/status.h"
#include "worker/backend/primitive.h"

namespace muster {

// Does nothing: for tests of plans that nobody executes.
class NoPrimitive : public Primitive {
 private:
  absl::Status Run(const Operands& /*operands*/) override {
    return absl::OkStatus();
  }
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_NO_PRIMITIVE_H_
