#include "worker/checkpoint/namespace_weights.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<std::vector<float>>;

// Over two ps tasks, in three parts.
constexpr int64_t kLong = 12 * kBlockElements + 5;

TensorDef Def(const std::string& name, int64_t elements) {
  TensorDef def;
  def.set_name(name);
  def.add_shape(elements);
  def.set_dtype(FLOAT32);
  return def;
}

// The chief of a namespace's job.
struct Chief {
  std::vector<TensorDef> tensors;
  std::unique_ptr<ParameterClient> client;
};

// Two ps tasks that keep serving, in this process.
class NamespaceWeightsTest : public ::testing::Test {
 protected:
  NamespaceWeightsTest() {
    for (int i = 0; i < 2; ++i) {
      ShardServer::Options shard;
      shard.shard.incarnation = 11 + i;
      shard.shard.ps_index = i;
      shard.shard.max_namespaces = 4;
      shard.clock = &clock_;
      shards_.push_back(std::make_unique<ShardServer>(shard));
    }
    weights_.space = "teacher";
  }

  Chief Connect(const std::string& space, std::vector<TensorDef> tensors,
                const Placement& placement, int64_t epoch) {
    ParameterClient::Options options;
    options.sender.set_namespace_(space);
    options.sender.mutable_task()->set_job("worker");
    options.sender.set_incarnation(100 + next_++);
    options.clock = &clock_;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (const auto& shard : shards_) {
      options.ps_names.push_back(absl::StrCat("/job:ps/task:", links.size()));
      links.push_back(std::make_unique<ForwardingParameterLink>(shard.get()));
    }
    auto client = std::make_unique<ParameterClient>(options, std::move(links));
    HelloRequest hello;
    hello.set_protocol_version(kProtocolVersion);
    *hello.mutable_sender() = options.sender;
    for (int i = 0; i < 2; ++i) {
      hello.set_ps_index(i);
      EXPECT_THAT(AwaitReply<HelloReply>([&](auto done) {
                    client->Hello(i, hello, std::move(done));
                  }),
                  IsOk());
    }
    EXPECT_THAT(client->SetModel(tensors, placement), IsOk());
    client->SetEpoch(epoch, {11, 12});
    return {std::move(tensors), std::move(client)};
  }

  // Element i of tensor t is 1000 t + i % 997.
  void MakeTeacher() {
    const int64_t cut = 8 * kBlockElements;
    teacher_ = Connect("teacher", {Def("a", 3), Def("long", kLong)},
                       {{{1, 0, 3}}, {{0, 0, cut}, {1, cut, kLong - cut}}}, 7);
    Values values;
    std::vector<TensorView> views;
    for (const TensorDef& tensor : teacher_.tensors) {
      values.emplace_back(tensor.shape(0));
      for (size_t i = 0; i < values.back().size(); ++i) {
        values.back()[i] = ValueOf(values.size() - 1, i);
      }
    }
    for (const auto& value : values) {
      views.push_back(ViewOf(absl::MakeConstSpan(value)));
    }
    ModelDefinition definition;
    definition.optimizer.set_name("sgd");
    definition.optimizer.add_attr()->set_name("learning_rate");
    definition.optimizer.mutable_attr(0)->set_f(1);
    ASSERT_THAT(teacher_.client->chief().LoadModel(definition, views), IsOk());
  }

  static float ValueOf(size_t tensor, size_t element) {
    return static_cast<float>(1000 * tensor + element % 997);
  }

  absl::StatusOr<std::string> Read(std::vector<TensorDef> parameters) {
    const Chief student =
        Connect("student", {Def("unused", 1)}, {{{0, 0, 1}}}, 1);
    read_.clear();
    for (const TensorDef& parameter : parameters) {
      read_.emplace_back(parameter.shape(0), -7.0f);
    }
    return ReadNamespaceWeights(
        weights_, student.client.get(), parameters,
        [this](int index) { return absl::MakeSpan(read_[index]); },
        reported_.reporter());
  }

  void ExpectRefused(const std::string& first, const std::string& second = "") {
    EXPECT_THAT(Read({Def("a", 3), Def("long", kLong)}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("--read_from=teacher: "),
                               HasSubstr(first), HasSubstr(second))));
  }

  const MonotonicClock clock_{};
  int next_ = 0;
  std::vector<std::unique_ptr<ShardServer>> shards_;
  Chief teacher_;
  NamespaceWeights weights_;
  Values read_;
  ReportedLines reported_;
};

TEST_F(NamespaceWeightsTest, ReadsTensorsInPiecesAndInAnyOrder) {
  MakeTeacher();
  EXPECT_THAT(Read({Def("long", kLong), Def("a", 3)}),
              IsOkAndHolds("2 of them from namespace 'teacher' (model epoch "
                           "7)"));
  EXPECT_THAT(read_[1], ElementsAre(0, 1, 2));
  for (size_t i = 0; i < read_[0].size(); ++i) {
    ASSERT_EQ(read_[0][i], ValueOf(1, i)) << "element " << i;
  }
}

TEST_F(NamespaceWeightsTest, WhatAPartialNamespaceLacksIsTheSeeds) {
  MakeTeacher();
  weights_.match.partial = true;
  EXPECT_THAT(Read({Def("a", 3), Def("head", 2)}), IsOk());
  EXPECT_THAT(read_[0], ElementsAre(0, 1, 2));
  EXPECT_THAT(read_[1], Each(-7));
  EXPECT_THAT(reported_.lines(),
              ElementsAre(HasSubstr("not in the namespace, initialized by "
                                    "seed: head"),
                          HasSubstr("passed over: 'long'")));
}

TEST_F(NamespaceWeightsTest, MistakesHaveNames) {
  ExpectRefused("is not on the ps tasks", "none there has a model");
  MakeTeacher();
  EXPECT_THAT(Read({Def("head", 2)}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lacks 1 parameters of the model: 'head'")));
  EXPECT_THAT(Read({Def("a", 4), Def("long", kLong)}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the namespace has [3] of F32")));
  weights_.space = "nobody";
  EXPECT_THAT(Read({Def("a", 3)}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--read_from=nobody: "),
                             HasSubstr("with a model are there: 'teacher'"))));
}

TEST_F(NamespaceWeightsTest, AModelThatIsNotSealedIsRefused) {
  MakeTeacher();
  teacher_.client->SetEpoch(8, {11, 12});
  ModelDefinition definition;
  definition.optimizer.set_name("sgd");
  definition.optimizer.add_attr()->set_name("learning_rate");
  definition.optimizer.mutable_attr(0)->set_f(1);
  ASSERT_THAT(teacher_.client->chief().Define(definition).status(), IsOk());
  ExpectRefused("has no whole model: /job:ps/task:0 is LOADING at epoch 8");
}

}  // namespace
}  // namespace muster
