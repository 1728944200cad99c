#ifndef WORKER_HOOK_WRITE_SUMMARY_H_
#define WORKER_HOOK_WRITE_SUMMARY_H_

#include <cstdint>
#include <functional>

#include "proto/summary.pb.h"

namespace muster {

// Gets the points of a step; where the summary hooks write to. Called on the
// training thread; returns at once.
using WriteSummary = std::function<void(int64_t global_step, Summary summary)>;

}  // namespace muster

#endif  // WORKER_HOOK_WRITE_SUMMARY_H_
