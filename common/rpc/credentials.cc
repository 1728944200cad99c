#include "common/rpc/credentials.h"

#include <utility>

namespace muster {

TaskCredentials InsecureCredentials() {
  TaskCredentials insecure;
  insecure.channel_to = [](const std::string&, int32_t) {
    return grpc::InsecureChannelCredentials();
  };
  insecure.server = grpc::InsecureServerCredentials();
  insecure.dial_over = [](FileDescriptor socket, const std::string&, int32_t) {
    return MakePlainChannel(std::move(socket));
  };
  insecure.accept_over = [](FileDescriptor socket) {
    return MakePlainChannel(std::move(socket));
  };
  return insecure;
}

}  // namespace muster
