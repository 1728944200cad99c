#include "ps_server/coordinator/state_versions.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Seconds(1000);

TEST(StateVersionsTest, AChange_IsToldAtOnceToAll) {
  StateVersions versions;
  versions.Raise(3);
  EXPECT_EQ(versions.newest(), 4);
  EXPECT_EQ(versions.told(), 4);
  EXPECT_EQ(versions.told_to_workers(), 4);
}

TEST(StateVersionsTest, MembersWithinAPause_AreToldOnce) {
  StateVersions versions;
  versions.RaiseForMember(/*matters_to_workers=*/false, kStart);
  EXPECT_EQ(versions.told(), 2) << "the first does not wait";
  for (int i = 1; i < 10; ++i) {
    versions.RaiseForMember(false, kStart + absl::Milliseconds(i));
  }
  EXPECT_EQ(versions.newest(), 11) << "each has its version";
  EXPECT_EQ(versions.told(), 2);
  EXPECT_EQ(versions.NextDeadline(), kStart + StateVersions::kPause);
  versions.Tick(versions.NextDeadline());
  EXPECT_EQ(versions.told(), 11);
  EXPECT_EQ(versions.told_to_workers(), 1);
  EXPECT_EQ(versions.NextDeadline(), absl::InfiniteFuture());
}

TEST(StateVersionsTest, MembersThatMatterToWorkers_AreToldThemOnce) {
  StateVersions versions;
  versions.RaiseForMember(/*matters_to_workers=*/true, kStart);
  versions.RaiseForMember(true, kStart);
  versions.RaiseForMember(false, kStart);
  EXPECT_EQ(versions.told_to_workers(), 2);
  versions.Tick(kStart + StateVersions::kPause);
  EXPECT_EQ(versions.told_to_workers(), 4);
}

TEST(StateVersionsTest, AChangeForAll_TellsOfTheMembersToo) {
  StateVersions versions;
  versions.RaiseForMember(false, kStart);
  versions.RaiseForMember(false, kStart);
  versions.Raise();
  EXPECT_EQ(versions.told(), 4);
  EXPECT_EQ(versions.NextDeadline(), absl::InfiniteFuture());
}

TEST(StateVersionsTest, TheAccount_IsNotForWorkers) {
  StateVersions versions;
  versions.RaiseAccount();
  EXPECT_EQ(versions.told(), 2);
  EXPECT_EQ(versions.told_to_workers(), 1);
}

}  // namespace
}  // namespace muster
