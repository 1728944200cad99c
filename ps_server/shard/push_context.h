#ifndef PS_SERVER_SHARD_PUSH_CONTEXT_H_
#define PS_SERVER_SHARD_PUSH_CONTEXT_H_

#include "ps_server/shard/value_memory.h"

namespace muster {

// Knowledge of a push besides the request.
struct PushContext {
  // Where the values of the answer go, which may then be kept; null: nowhere.
  // Those of a push whose gradient is applied at once are written on the way;
  // the request's bytes may lie there, too, if its two codecs take as many
  // bytes a value.
  ValueMemory memory;
  // The sender has seen that the request's bytes, as float32, are finite. It
  // could write others there at any time, so that looking again would not tell
  // more.
  bool is_finite = false;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_PUSH_CONTEXT_H_
