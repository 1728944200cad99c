#ifndef TESTS_TESTING_FIXED_ENTRANCE_H_
#define TESTS_TESTING_FIXED_ENTRANCE_H_

#include <utility>

#include "grpcpp/server_context.h"
#include "ps_server/caller/caller.h"
#include "ps_server/service/entrance.h"

namespace muster {

// Takes every peer for one caller, who may be changed between calls.
class FixedEntrance : public Entrance {
 public:
  explicit FixedEntrance(const Caller* caller, Options options = {})
      : Entrance(std::move(options)), caller_(caller) {}

  Caller Identify(const grpc::CallbackServerContext&) const override {
    return *caller_;
  }

 private:
  const Caller* const caller_;
};

}  // namespace muster

#endif  // TESTS_TESTING_FIXED_ENTRANCE_H_
