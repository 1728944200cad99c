#ifndef COMMON_PROCESS_EXHAUSTION_H_
#define COMMON_PROCESS_EXHAUSTION_H_

namespace muster {

// From here on a thread that cannot have memory, or start another, says so and
// ends the process with kExitBadConfig, where an exception that nobody catches
// would abort it, and where a library in C aborts it. For the beginning of
// main; `program` is kept.
void ExplainExhaustion(const char* program);

}  // namespace muster

#endif  // COMMON_PROCESS_EXHAUSTION_H_
