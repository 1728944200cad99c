#ifndef TESTS_WORKER_STEP_GRANTS_H_
#define TESTS_WORKER_STEP_GRANTS_H_

#include <cstdint>

#include "proto/parameter_service.pb.h"
#include "tests/worker/input/leases.h"
#include "worker/session/session_messages.h"

namespace muster {

// The rows of step `number`, from 1 on, of a worker alone.
inline RowLease RowsOfStep(int64_t number, int64_t rows) {
  return LeaseOf({{(number - 1) * rows, rows}});
}

// The grant of that step, which has the rows of the next one, too.
inline StepGrant GrantOf(int64_t number, int64_t rows,
                         const StepToken& token = {}) {
  return {token, {RowsOfStep(number, rows), RowsOfStep(number + 1, rows)}, {}};
}

}  // namespace muster

#endif  // TESTS_WORKER_STEP_GRANTS_H_
