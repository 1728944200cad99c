#include "ps_server/service/offered_tokens.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kMoment = absl::Milliseconds(1);

Caller WorkerOf(int index) { return {Role::kWorker, TaskKey("worker", index)}; }

class OfferedTokensTest : public testing::Test {
 protected:
  std::string Make(const Caller& caller = {}) {
    const absl::StatusOr<std::string> token = tokens_.Make(caller, now_);
    EXPECT_THAT(token, IsOk());
    return token.value_or("");
  }
  bool Show(const std::string& token) {
    return tokens_.Show(token, now_).has_value();
  }
  // kMost beside `others`.
  void Fill(size_t others) {
    for (size_t i = others; i < OfferedTokens::kMost; ++i) Make();
  }

  OfferedTokens tokens_{Transport::kSharedMemory};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(OfferedTokensTest, ATokenIsOfTheCallerItWasMadeFor) {
  const std::string one = Make(WorkerOf(1));
  const std::string two = Make(WorkerOf(2));
  const std::optional<Caller> caller = tokens_.Show(one, now_);
  ASSERT_TRUE(caller.has_value());
  EXPECT_EQ(caller->task, TaskKey("worker", 1));
  EXPECT_EQ(caller->transport, Transport::kSharedMemory);
  EXPECT_EQ(tokens_.Show(two, now_)->task, TaskKey("worker", 2));
  EXPECT_FALSE(Show(""));
}

// Without certificates all workers are one caller.
TEST_F(OfferedTokensTest, OffersOfOneCaller_DoNotEndEachOther) {
  const std::string used = Make();
  ASSERT_TRUE(Show(used));
  const std::string fresh = Make();
  Fill(/*others=*/2);
  EXPECT_TRUE(Show(used));
  EXPECT_TRUE(Show(fresh));
}

TEST_F(OfferedTokensTest, AnOfferNobodyShows_Lives30Seconds) {
  const std::string first = Make();
  const std::string second = Make();
  now_ += absl::Seconds(30) - kMoment;
  EXPECT_TRUE(Show(first));
  now_ += kMoment;
  EXPECT_FALSE(Show(second));
  EXPECT_TRUE(Show(first)) << "a socket has shown it";
}

TEST_F(OfferedTokensTest, AShownOffer_LivesUntilItsSocketCloses) {
  const std::string token = Make();
  ASSERT_TRUE(Show(token));
  now_ += absl::Hours(1000);
  ASSERT_TRUE(Show(token));
  tokens_.Close(token);
  EXPECT_TRUE(Show(token)) << "the other socket is open";
  tokens_.Close(token);
  tokens_.Close(token);
  EXPECT_FALSE(Show(token));
  tokens_.Close(token);
}

TEST_F(OfferedTokensTest, Beyond4096_TheOldestThatNobodyShowedGoes) {
  const std::string used = Make();
  ASSERT_TRUE(Show(used));
  const std::string oldest = Make();
  const std::string second = Make();
  Fill(/*others=*/3);
  Make();
  EXPECT_FALSE(Show(oldest));
  EXPECT_TRUE(Show(second));
  EXPECT_TRUE(Show(used));
}

TEST_F(OfferedTokensTest, WhereAll4096AreInUse_AnotherIsRefused) {
  std::string last;
  for (size_t i = 0; i < OfferedTokens::kMost; ++i) {
    last = Make();
    ASSERT_TRUE(Show(last));
  }
  EXPECT_THAT(tokens_.Make({}, now_),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("its shared memory 4096 times")));
  tokens_.Close(last);
  EXPECT_THAT(tokens_.Make({}, now_), IsOk());
}

TEST_F(OfferedTokensTest, ARedeemedToken_IsOfItsCallerOnce) {
  OfferedTokens tcp(Transport::kTcp);
  const std::string one = *tcp.Make(WorkerOf(1), now_);
  const std::string two = *tcp.Make(WorkerOf(2), now_);
  const std::optional<Caller> caller = tcp.Redeem(one, now_);
  ASSERT_TRUE(caller.has_value());
  EXPECT_EQ(caller->task, TaskKey("worker", 1));
  EXPECT_EQ(caller->transport, Transport::kTcp);
  EXPECT_FALSE(tcp.Redeem(one, now_).has_value());
  EXPECT_FALSE(tcp.Redeem("", now_).has_value());
  EXPECT_EQ(tcp.Redeem(two, now_)->task, TaskKey("worker", 2));
}

TEST_F(OfferedTokensTest, AnEndedOrShownToken_CannotBeRedeemed) {
  const std::string shown = Make();
  const std::string ended = Make();
  ASSERT_TRUE(Show(shown));
  EXPECT_FALSE(tokens_.Redeem(shown, now_).has_value());
  EXPECT_TRUE(Show(shown));
  now_ += OfferedTokens::kUnshown;
  EXPECT_FALSE(tokens_.Redeem(ended, now_).has_value());
}

TEST_F(OfferedTokensTest, RedeemedOffers_TakeNoPlace) {
  const std::string oldest = Make();
  for (size_t i = 0; i < OfferedTokens::kMost; ++i) {
    ASSERT_TRUE(tokens_.Redeem(Make(), now_).has_value());
  }
  EXPECT_TRUE(Show(oldest));
}

TEST_F(OfferedTokensTest, ARefusal_NamesTheTransport) {
  OfferedTokens tcp(Transport::kTcp);
  for (size_t i = 0; i < OfferedTokens::kMost; ++i) {
    ASSERT_TRUE(tcp.Show(*tcp.Make({}, now_), now_).has_value());
  }
  EXPECT_THAT(tcp.Make({}, now_),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("its TCP connections 4096 times")));
}

}  // namespace
}  // namespace muster
