#ifndef COMMON_SUMMARY_WRITE_SUMMARY_H_
#define COMMON_SUMMARY_WRITE_SUMMARY_H_

#include <cstdint>
#include <functional>

#include "proto/summary.pb.h"

namespace muster {

// Gets the points of a step; where the summary hooks write to. Called on the
// training thread; returns at once.
using WriteSummary = std::function<void(int64_t global_step, Summary summary)>;

}  // namespace muster

#endif  // COMMON_SUMMARY_WRITE_SUMMARY_H_
