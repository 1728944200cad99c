#ifndef PS_SERVER_SERVICE_DATA_LINK_H_
#define PS_SERVER_SERVICE_DATA_LINK_H_

#include "absl/time/time.h"
#include "common/rpc/parameter_link.h"
#include "ps_server/shard/push_context.h"

namespace muster {

// A shard as those see it who carry its values elsewhere: the calls that are
// answered with values, with memory to write these to. An answer's values may
// then be kept. The memory is asked for, and what it refers to is used, until
// `done` returns.
class DataLink : public ParameterLink {
 public:
  // As Pull and Push.
  virtual void PullInto(const PullRequest& request, ValueMemory memory,
                        absl::Time deadline,
                        ReplyCallback<Frame<PullReply>> done) = 0;
  virtual void PushInto(Frame<PushPart> request, PushContext context,
                        absl::Time deadline,
                        ReplyCallback<Frame<PushReply>> done) = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_DATA_LINK_H_
