#include "common/rpc/server_settings.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.grpc.pb.h"

namespace muster {
namespace {

std::unique_ptr<grpc::Server> Start(int wanted_port,
                                    ParameterService::Service* service,
                                    int* port) {
  grpc::ServerBuilder builder;
  const auto buffers = ApplyServerSettings({}, &builder);
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", wanted_port),
                           grpc::InsecureServerCredentials(), port);
  builder.RegisterService(service);
  return builder.BuildAndStart();
}

TEST(ServerSettingsTest, ASecondServerOnAPortDoesNotStart) {
  ParameterService::Service service;
  int port = 0;
  const std::unique_ptr<grpc::Server> first = Start(0, &service, &port);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(port, 0);
  ParameterService::Service other;
  int other_port = 0;
  EXPECT_EQ(Start(port, &other, &other_port), nullptr);
}

}  // namespace
}  // namespace muster
