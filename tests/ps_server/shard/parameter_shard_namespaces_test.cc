// Several models on one ps task that keeps serving.
#include <limits>
#include <string>
#include <vector>

#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sender In(const std::string& space, int32_t index, uint64_t incarnation) {
  Sender sender = MakeSender(index, incarnation);
  sender.set_namespace_(space);
  return sender;
}

class ParameterShardNamespacesTest : public testing::Test {
 protected:
  ParameterShardNamespacesTest() : shard_(Options()) {}

  static ShardOptions Options() {
    ShardOptions options;
    options.incarnation = kPsIncarnation;
    options.max_bytes = 1000;
    options.max_namespace_bytes = 600;
    options.max_namespaces = 2;
    // Its job is not that of a named namespace.
    JobDef* const ps = options.cluster.add_job();
    ps->set_name("ps");
    (*ps->mutable_tasks())[0] = "h:1";
    JobDef* const worker = options.cluster.add_job();
    worker->set_name("worker");
    (*worker->mutable_tasks())[0] = "h:2";
    return options;
  }

  absl::StatusOr<HelloReply> Hello(const Sender& sender,
                                   uint64_t takeover = 0) {
    HelloRequest hello = MakeHello(sender, takeover);
    (*hello.mutable_ps_addresses())[0] = "h:1";
    if (sender.namespace_().empty()) hello.set_sender_address("h:2");
    return shard_.Hello(hello);
  }

  // "w" of so many zeros.
  void MakeReady(const Sender& chief, int64_t elements = 1) {
    ASSERT_THAT(Hello(chief), IsOk());
    ASSERT_THAT(Define(chief, elements), IsOk());
    ASSERT_THAT(shard_.Load(MakeLoad(chief, {MakeSlice("w", 0, elements)},
                                     BytesOf(std::vector<float>(elements)))),
                IsOk());
    ASSERT_THAT(shard_.Seal(MakeSeal(chief)), IsOk());
  }

  absl::Status Define(const Sender& chief, int64_t elements) {
    return shard_.Define(MakeDefine(chief, {MakeTensor("w", {elements})}))
        .status();
  }

  absl::Status Push(const Sender& sender, int64_t step) {
    return shard_
        .Push(MakePush(sender, step, {MakeSlice("w", 0, 1)},
                       BytesOf<float>({-1})))
        .status();
  }

  std::vector<float> Pull(const Sender& sender) {
    const auto reply = shard_.Pull(MakePull(sender, {MakeSlice("w", 0, 1)}));
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? ValuesOf<float>(reply->data) : std::vector<float>();
  }

  EndNamespaceRequest EndOf(const std::string& space, bool drop) {
    EndNamespaceRequest request;
    request.set_namespace_(space);
    request.set_drop(drop);
    return request;
  }

  ParameterShard shard_;
  const Sender default_ = In("", 0, 11);
  const Sender a_ = In("a", 0, 22);
};

// One task and step number, three models.
TEST_F(ParameterShardNamespacesTest, ATaskIsOneOfItsNamespace) {
  const std::vector<Sender> senders = {default_, a_, In("b", 0, 33)};
  for (const Sender& sender : senders) MakeReady(sender);
  for (const Sender& sender : senders) {
    EXPECT_THAT(Push(sender, 1), IsOk());
    EXPECT_THAT(Push(sender, 1), IsOk()) << "a duplicate";
  }
  EXPECT_THAT(Push(a_, 2), IsOk());
  EXPECT_THAT(Pull(default_), ElementsAre(1));
  EXPECT_THAT(Pull(a_), ElementsAre(2));
  EXPECT_THAT(Pull(senders[2]), ElementsAre(1));
}

TEST_F(ParameterShardNamespacesTest, APullMayBeOfAnotherNamespacesModel) {
  MakeReady(default_);
  MakeReady(a_);
  ASSERT_THAT(Push(a_, 1), IsOk());
  PullRequest pull = MakePull(default_, {MakeSlice("w", 0, 1)});
  pull.set_from_namespace("a");
  const auto reply = shard_.Pull(pull);
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(ValuesOf<float>(reply->data), ElementsAre(1));
  EXPECT_THAT(Pull(default_), ElementsAre(0));
  pull.mutable_fence()->set_model_epoch(9);
  EXPECT_EQ(ReasonOf(shard_.Pull(pull).status()), ErrorReason::kFenced);
  // Who may not speak reads nothing.
  pull = MakePull(In("", 0, 12), {MakeSlice("w", 0, 1)});
  pull.set_from_namespace("a");
  EXPECT_EQ(ReasonOf(shard_.Pull(pull).status()), ErrorReason::kFenced);
  pull = MakePull(default_, {MakeSlice("w", 0, 1)});
  pull.set_from_namespace("b");
  EXPECT_THAT(shard_.Pull(pull).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("namespace 'b' is not here")));
}

TEST_F(ParameterShardNamespacesTest, AReaderWithoutHello_DisplacesNobody) {
  MakeReady(a_);
  ASSERT_THAT(Push(a_, 1), IsOk());
  PullRequest pull = MakePull(In("a", 0, 0), {MakeSlice("w", 0, 1)});
  pull.mutable_fence()->set_ps_incarnation(0);
  EXPECT_EQ(ReasonOf(shard_.Pull(pull).status()), ErrorReason::kFenced);
  pull.set_from_namespace("a");
  const auto reply = shard_.Pull(pull);
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(ValuesOf<float>(reply->data), ElementsAre(1));
  EXPECT_THAT(Push(a_, 2), IsOk());
  // Rounds are moved on by workers alone.
  pull.mutable_token()->set_round(1);
  EXPECT_EQ(ReasonOf(shard_.Pull(pull).status()), ErrorReason::kFenced);
  pull.clear_token();
  pull.mutable_fence()->set_model_epoch(9);
  EXPECT_EQ(ReasonOf(shard_.Pull(pull).status()), ErrorReason::kFenced);
}

TEST_F(ParameterShardNamespacesTest, AStateHasDefinitionsIfTheyAreAskedFor) {
  MakeReady(a_, 3);
  StateRequest request;
  request.set_namespace_("a");
  EXPECT_EQ(shard_.StateOf(request)->definitions_size(), 0);
  request.set_with_definitions(true);
  const auto state = shard_.StateOf(request);
  ASSERT_EQ(state->definitions_size(), 1);
  EXPECT_EQ(state->definitions(0).name(), "w");
  EXPECT_EQ(state->definitions(0).shape(0), 3);
}

TEST_F(ParameterShardNamespacesTest, ANewStartReplacesOnlyThatOfItsNamespace) {
  MakeReady(default_);
  MakeReady(a_);
  const Sender next = In("a", 0, 23);
  const auto reply = Hello(next);
  ASSERT_THAT(reply, IsOk());
  ASSERT_NE(reply->takeover(), 0);
  ASSERT_THAT(Hello(next, reply->takeover()), IsOk());
  EXPECT_EQ(ReasonOf(Push(a_, 1)), ErrorReason::kReplaced);
  EXPECT_THAT(Push(default_, 1), IsOk());
  EXPECT_THAT(Push(next, 1), IsOk());
}

TEST_F(ParameterShardNamespacesTest, NobodyIsThereWithoutHello) {
  EXPECT_EQ(ReasonOf(Push(a_, 1)), ErrorReason::kFenced);
  EXPECT_THAT(Hello(In("a b", 0, 5)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("namespace 'a b'")));
  ASSERT_THAT(Hello(a_), IsOk());
  ASSERT_THAT(Hello(In("b", 0, 5)), IsOk());
  EXPECT_THAT(Hello(In("c", 0, 5)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("(--max_namespaces): a, b;")));
}

TEST_F(ParameterShardNamespacesTest, MemoryIsDividedAndTheRefusalSaysWhoHasIt) {
  MakeReady(a_, 150);
  ASSERT_THAT(Hello(default_), IsOk());
  EXPECT_THAT(Define(default_, 101),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("namespace '' may have 400 bytes"),
                             HasSubstr("all namespaces together 1000, of which "
                                       "hold: 'a' 600"))));
  EXPECT_THAT(Define(default_, 100), IsOk());
  const Sender b = In("b", 0, 5);
  ASSERT_THAT(Hello(b), IsOk());
  EXPECT_THAT(Define(b, 1), StatusIs(absl::StatusCode::kResourceExhausted,
                                     HasSubstr("'' 400, 'a' 600")));
  EXPECT_THAT(Pull(a_), ElementsAre(0));
  ASSERT_THAT(shard_.EndNamespace(EndOf("a", /*drop=*/true)), IsOk());
  EXPECT_THAT(Define(b, 151), StatusIs(absl::StatusCode::kResourceExhausted,
                                       HasSubstr("--max_namespace_bytes 600")));
  EXPECT_THAT(Define(b, 150), IsOk());
}

TEST_F(ParameterShardNamespacesTest, ADropEndsWhoWasThereAndNobodyElse) {
  MakeReady(default_);
  MakeReady(a_);
  const auto end = shard_.EndNamespace(EndOf("a", /*drop=*/true));
  ASSERT_THAT(end, IsOk());
  EXPECT_EQ(end->freed_bytes(), 4);
  const absl::Status push = Push(a_, 1);
  EXPECT_EQ(ReasonOf(push), ErrorReason::kReplaced);
  EXPECT_THAT(push.message(), HasSubstr("namespace 'a' was dropped"));
  EXPECT_EQ(ReasonOf(Hello(a_).status()), ErrorReason::kReplaced);
  EXPECT_THAT(Push(default_, 1), IsOk());
  EXPECT_THAT(shard_.EndNamespace(EndOf("a", /*drop=*/true)),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("namespace 'a' is not here")));
  const auto next = Hello(In("a", 0, 23));
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ(next->state().phase(), EMPTY);
  EXPECT_EQ(next->takeover(), 0);
}

TEST_F(ParameterShardNamespacesTest, AResetLeavesTheName) {
  MakeReady(a_);
  MakeReady(default_);
  for (const char* space : {"a", ""}) {
    ASSERT_THAT(shard_.EndNamespace(EndOf(space, /*drop=*/false)), IsOk());
  }
  EXPECT_EQ(ReasonOf(Push(a_, 1)), ErrorReason::kReplaced);
  const auto list = shard_.ListNamespaces({});
  ASSERT_THAT(list, IsOk());
  ASSERT_EQ(list->namespaces_size(), 2);
  EXPECT_EQ(list->namespaces(1).namespace_(), "a");
  EXPECT_EQ(list->namespaces(1).shard().phase(), EMPTY);
  EXPECT_EQ(list->max_namespace_bytes(), 600);
}

}  // namespace
}  // namespace muster
