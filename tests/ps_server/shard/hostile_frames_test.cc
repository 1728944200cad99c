// Malformed requests: each is refused with the right code and a message that
// says what is wrong, and changes nothing (S10 of the security checklist).
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kUnimplemented = absl::StatusCode::kUnimplemented;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kElements = 2 * kBlockElements + 10;
constexpr int64_t kBlock = kBlockElements;

const Sender& Peer() {
  static const Sender& peer = *new Sender(MakeSender(0, 9));
  return peer;
}

// A READY shard with "w" [kElements] (trainable) and "s" [4] (state).
std::unique_ptr<ParameterShard> MakeShard() {
  ShardOptions options;
  options.incarnation = kPsIncarnation;
  options.max_bytes = 64 << 20;
  auto shard = std::make_unique<ParameterShard>(options);
  EXPECT_THAT(shard->Hello(MakeHello(Peer())), IsOk());
  EXPECT_THAT(shard->Define(MakeDefine(Peer(), {MakeTensor("w", {kElements}),
                                                MakeTensor("s", {4}, STATE)})),
              IsOk());
  EXPECT_THAT(shard->Load(MakeLoad(Peer(), {MakeSlice("w", 0, kElements)},
                                   BytesOf(std::vector<float>(kElements)))),
              IsOk());
  EXPECT_THAT(shard->Load(MakeLoad(Peer(), {MakeSlice("s", 0, 4)},
                                   BytesOf(std::vector<float>(4)))),
              IsOk());
  EXPECT_THAT(shard->Seal(MakeSeal(Peer())), IsOk());
  return shard;
}

struct PushCase {
  const char* name;
  std::function<void(Frame<PushPart>&)> spoil;
  absl::StatusCode code;
  const char* message;
};

void SetSlices(Frame<PushPart>& push, const std::vector<TensorSlice>& slices,
               int64_t elements) {
  push.header.clear_slices();
  for (const TensorSlice& slice : slices) *push.header.add_slices() = slice;
  push.data = BytesOf(std::vector<float>(elements, -1.0f));
}

std::vector<PushCase> PushCases() {
  using Push = Frame<PushPart>&;
  const auto slice = [](int64_t offset, int64_t length) {
    return [=](Push p) { SetSlices(p, {MakeSlice("w", offset, length)}, 4); };
  };
  return {
      {"unknown tensor",
       [](Push p) { SetSlices(p, {MakeSlice("ww", 0, 4)}, 4); }, kNotFound,
       "did you mean 'w'"},
      {"empty name", [](Push p) { SetSlices(p, {MakeSlice("", 0, 4)}, 4); },
       kNotFound, "no parameter ''"},
      {"escape in name",
       [](Push p) { SetSlices(p, {MakeSlice("\x1b]0;x\n", 0, 4)}, 4); },
       kNotFound, "\\x1b]0;x\\n"},
      {"name with NUL",
       [](Push p) {
         SetSlices(p, {MakeSlice(std::string("w\0", 2), 0, 4)}, 4);
       },
       kNotFound, "w\\x00"},
      {"negative offset", slice(-kBlock, kBlock), kInvalid, "not inside"},
      {"negative length", slice(0, -1), kInvalid, "not inside"},
      {"no length", slice(0, 0), kInvalid, "not inside"},
      {"offset at end", slice(kElements, 1), kInvalid, "not inside"},
      {"past the end", slice(0, kElements + 1), kInvalid, "not inside"},
      {"sum overflows", slice(kBlock, kMax), kInvalid, "not inside"},
      {"both at limit", slice(kMax, kMax), kInvalid, "not inside"},
      {"smallest offset", slice(std::numeric_limits<int64_t>::min(), 4),
       kInvalid, "not inside"},
      {"912,345,678 floats", slice(0, 912345678), kInvalid, "not inside"},
      {"offset inside a block", slice(1, kBlock - 1), kInvalid, "whole blocks"},
      {"length not whole", slice(0, kBlock - 1), kInvalid, "whole blocks"},
      {"end not whole", slice(kBlock, 5), kInvalid, "whole blocks"},
      {"same slice twice",
       [](Push p) {
         SetSlices(p, {MakeSlice("s", 0, 4), MakeSlice("s", 0, 4)}, 8);
       },
       kInvalid, "overlap"},
      {"overlap in disorder",
       [](Push p) {
         SetSlices(p,
                   {MakeSlice("w", kBlock, kBlock), MakeSlice("s", 0, 4),
                    MakeSlice("w", 0, 2 * kBlock)},
                   8);
       },
       kInvalid, "overlap"},
      {"no data", [](Push p) { p.data = absl::Cord(); }, kInvalid,
       "the frame has 0"},
      {"one byte short", [](Push p) { p.data.RemoveSuffix(1); }, kInvalid,
       "the frame has 15"},
      {"one byte more", [](Push p) { p.data.Append("x"); }, kInvalid,
       "the frame has 17"},
      {"data without slices", [](Push p) { p.header.clear_slices(); }, kInvalid,
       "take 0 bytes"},
      {"more than a part",
       [](Push p) {
         SetSlices(p, {MakeSlice("w", 0, kElements)}, 4);
         for (int i = 0; i < 3; ++i) {
           *p.header.add_slices() = MakeSlice("w", 0, kElements);
         }
       },
       kInvalid, "use more parts"},
      {"step 0", [](Push p) { p.header.set_step(0); }, kInvalid, "from 1"},
      {"negative step", [](Push p) { p.header.set_step(-kMax); }, kInvalid,
       "from 1"},
      {"no parts", [](Push p) { p.header.set_parts(0); }, kInvalid,
       "part 0 of 0"},
      {"negative parts", [](Push p) { p.header.set_parts(-1); }, kInvalid,
       "part 0 of -1"},
      {"too many parts", [](Push p) { p.header.set_parts(1 << 30); }, kInvalid,
       "<= 4096"},
      {"part out of range", [](Push p) { p.header.set_part(1); }, kInvalid,
       "part 1 of 1"},
      {"negative part", [](Push p) { p.header.set_part(-1); }, kInvalid,
       "part -1"},
      {"version of the future", [](Push p) { p.header.set_pulled_version(1); },
       kInvalid, "pulled version 1"},
      {"negative version", [](Push p) { p.header.set_pulled_version(-1); },
       kInvalid, "pulled version -1"},
      {"codec", [](Push p) { p.header.set_codec("int8"); }, kUnimplemented,
       "'int8'"},
      {"codec with escape", [](Push p) { p.header.set_codec("\n\x1b"); },
       kUnimplemented, "\\n\\x1b"},
      {"codec of values", [](Push p) { p.header.set_values_codec("\n\x1b"); },
       kUnimplemented, "\\n\\x1b"},
      {"float32 said to be bf16", [](Push p) { p.header.set_codec("bf16"); },
       kInvalid, "take 8 bytes, the frame has 16"},
      {"NaN in bf16",
       [](Push p) {
         p.header.set_codec("bf16");
         p.data = absl::Cord("\x80\x3f\xc0\x7f\x80\x3f\x80\x3f");
       },
       kInvalid, "at element 1"},
      {"NaN in fp16",
       [](Push p) {
         p.header.set_codec("fp16");
         p.data = absl::Cord("\x01\xfc\xff\x7b\xff\x7b\xff\x7b");
       },
       kInvalid, "at element 0"},
      {"namespace",
       [](Push p) { p.header.mutable_slices(0)->set_namespace_("b"); },
       kUnimplemented, "namespace 'b'"},
      {"namespace of the sender",
       [](Push p) { p.header.mutable_sender()->set_namespace_("\n"); },
       kUnimplemented, "namespace '\\n'"},
      {"learning rate", [](Push p) { p.header.set_learning_rate(0.5F); },
       kUnimplemented, "learning_rate 0.5"},
      {"learning rate 0", [](Push p) { p.header.set_learning_rate(0); },
       kUnimplemented, "learning_rate 0"},
      {"no sender", [](Push p) { p.header.clear_sender(); },
       absl::StatusCode::kFailedPrecondition, "fenced: "},
      {"no fence", [](Push p) { p.header.clear_fence(); },
       absl::StatusCode::kFailedPrecondition, "fenced: "},
      {"unknown sender",
       [](Push p) {
         p.header.mutable_sender()->mutable_task()->set_job("\n[ps]");
       },
       absl::StatusCode::kFailedPrecondition, "\\n[ps]"},
  };
}

TEST(HostileFramesTest, EveryMalformedPushIsRefusedAndChangesNothing) {
  const std::unique_ptr<ParameterShard> shard = MakeShard();
  for (const PushCase& one : PushCases()) {
    SCOPED_TRACE(one.name);
    Frame<PushPart> push = MakePush(Peer(), 1, {MakeSlice("s", 0, 4)},
                                    BytesOf(std::vector<float>(4, -1.0f)));
    one.spoil(push);
    EXPECT_THAT(shard->Push(push), StatusIs(one.code, HasSubstr(one.message)));
  }
  EXPECT_EQ(shard->counters().applied_parts, 0);
  const auto pulled = shard->Pull(
      MakePull(Peer(), {MakeSlice("w", 0, kElements), MakeSlice("s", 0, 4)}));
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(ValuesOf<float>(pulled->data), Each(0.0f));
  // The unspoilt push is accepted, so the cases fail for their own reasons.
  EXPECT_THAT(shard->Push(MakePush(Peer(), 1, {MakeSlice("s", 0, 4)},
                                   BytesOf(std::vector<float>(4, -1.0f)))),
              IsOk());
}

struct DefineCase {
  const char* name;
  std::function<void(DefineRequest&)> spoil;
  absl::StatusCode code;
  const char* message;
};

std::vector<DefineCase> DefineCases() {
  using Define = DefineRequest&;
  const auto shape = [](std::vector<int64_t> dims) {
    return [dims](Define d) { *d.mutable_tensors(0) = MakeTensor("w", dims); };
  };
  return {
      {"shape overflows", shape({kMax, kMax}), kInvalid, "'w'"},
      {"huge", shape({int64_t{1} << 40}), kInvalid,
       "'w': 4398046511104 bytes with its slots"},
      {"zero dimension", shape({3, 0}), kInvalid, "not positive"},
      {"negative dimension", shape({-1}), kInvalid, "'w'"},
      {"rank 9", shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), kInvalid, "'w'"},
      {"bad name", [](Define d) { d.mutable_tensors(0)->set_name("a b"); },
       kInvalid, "'a b'"},
      {"huge epoch", [](Define d) { d.set_model_epoch(INT64_MAX); }, kInvalid,
       "model epoch"},
      {"no name", [](Define d) { d.mutable_tensors(0)->clear_name(); },
       kInvalid, "1 to 255"},
      {"long name",
       [](Define d) { d.mutable_tensors(0)->set_name(std::string(256, 'a')); },
       kInvalid, "1 to 255"},
      {"one name twice", [](Define d) { *d.add_tensors() = d.tensors(0); },
       kInvalid, "two parameters"},
      {"dtype", [](Define d) { d.mutable_tensors(0)->set_dtype(FLOAT64); },
       kUnimplemented, "float64"},
      {"unknown dtype",
       [](Define d) {
         d.mutable_tensors(0)->set_dtype(static_cast<DataType>(99));
       },
       kUnimplemented, "'w'"},
      {"unknown kind",
       [](Define d) {
         d.mutable_tensors(0)->set_kind(static_cast<TensorKind>(9));
       },
       kInvalid, "kind"},
      {"layout", [](Define d) { d.mutable_tensors(0)->set_layout("nChw16c"); },
       kUnimplemented, "nChw16c"},
      {"first half of a tensor",
       [](Define d) { d.mutable_tensors(0)->mutable_extent()->set_length(2); },
       kInvalid, "'w': extent [0, + 2) of its 3 elements"},
      {"end of a tensor",
       [](Define d) {
         Extent* const extent = d.mutable_tensors(0)->mutable_extent();
         extent->set_begin(1);
         extent->set_length(3);
       },
       kInvalid, "'w': extent [1, + 3)"},
      {"empty extent", [](Define d) { d.mutable_tensors(0)->mutable_extent(); },
       kInvalid, "'w': extent [0, + 0)"},
      {"optimizer", [](Define d) { d.mutable_optimizer()->set_name("sgdd"); },
       kNotFound, "sgd"},
  };
}

TEST(HostileFramesTest, EveryMalformedDefineIsRefusedAndTheModelStays) {
  const std::unique_ptr<ParameterShard> shard = MakeShard();
  for (const DefineCase& one : DefineCases()) {
    SCOPED_TRACE(one.name);
    DefineRequest define =
        MakeDefine(Peer(), {MakeTensor("w", {3})}, /*epoch=*/2);
    one.spoil(define);
    EXPECT_THAT(shard->Define(define),
                StatusIs(one.code, HasSubstr(one.message)));
  }
  EXPECT_EQ(shard->State().phase(), READY);
  EXPECT_EQ(shard->State().model_epoch(), 1);
}

TEST(HostileFramesTest, LoadsAndSnapshotReadsAreCheckedToo) {
  const std::unique_ptr<ParameterShard> shard = MakeShard();
  ASSERT_THAT(
      shard->Define(MakeDefine(
          Peer(), {MakeTensor("w", {4}), MakeTensor("s", {4}, STATE)}, 2)),
      IsOk());
  const auto load = [&](const std::string& slot, const TensorSlice& slice,
                        absl::Cord data) {
    return shard->Load(MakeLoad(Peer(), {slice}, std::move(data), slot, 2));
  };
  EXPECT_THAT(load("m", MakeSlice("w", 0, 4), absl::Cord()),
              StatusIs(kNotFound, HasSubstr("no slot 'm'")));
  EXPECT_THAT(load("t", MakeSlice("s", 0, 1), BytesOf<int64_t>({1})),
              StatusIs(kInvalid, HasSubstr("state tensor")));
  EXPECT_THAT(load("t", MakeSlice("w", 0, 1), BytesOf<int64_t>({-1})),
              StatusIs(kInvalid, HasSubstr("out of range")));
  EXPECT_THAT(load("t", MakeSlice("w", 0, 1), BytesOf<int64_t>({INT64_MAX})),
              StatusIs(kInvalid, HasSubstr("out of range")));
  EXPECT_THAT(load("t", MakeSlice("w", 0, 4), BytesOf<int64_t>({1, 1, 1, 1})),
              StatusIs(kInvalid, HasSubstr("not inside")));
  EXPECT_THAT(load("", MakeSlice("w", 2, 3), BytesOf<float>({1, 1, 1})),
              StatusIs(kInvalid, HasSubstr("not inside")));
  EXPECT_THAT(load("", MakeSlice("w", 0, 1),
                   BytesOf<float>({std::numeric_limits<float>::infinity()})),
              StatusIs(kInvalid, HasSubstr("'w'")));
  EXPECT_THAT(
      shard->ReadSnapshot(MakeRead(Peer(), 1, MakeSlice("w", 0, 1))),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("fenced")));
}

}  // namespace
}  // namespace muster
