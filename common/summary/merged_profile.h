#ifndef COMMON_SUMMARY_MERGED_PROFILE_H_
#define COMMON_SUMMARY_MERGED_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/profile.pb.h"

namespace muster {

// The parts of several tasks as one document for chrome://tracing and
// ui.perfetto.dev: a process a task, ps tasks first, all on the clock of ps
// task 0, with an arrow from each push of a part to its update. What a task
// says of its clock, and how much found no room, is its label. Each of
// `missing` ("/job:worker/task:1: lost") is a process without spans. A part may
// hold anything: events that make no sense are left out.
std::string MergeProfile(std::vector<ProfilePart> parts,
                         const std::vector<std::string>& missing);

// The most by which two of their clocks may differ.
int64_t WorstClockError(const std::vector<ProfilePart>& parts);

}  // namespace muster

#endif  // COMMON_SUMMARY_MERGED_PROFILE_H_
