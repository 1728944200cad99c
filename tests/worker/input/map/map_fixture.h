#ifndef TESTS_WORKER_INPUT_MAP_MAP_FIXTURE_H_
#define TESTS_WORKER_INPUT_MAP_MAP_FIXTURE_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/training.pb.h"
#include "worker/input/map/map_chain.h"
#include "worker/input/map/row_random.h"
#include "worker/input/map/row_spec.h"

namespace muster {

// Stages from text: "type: 'resize' attr { name: 'size' i: 2 }".
inline std::vector<MapStageSpec> MapStages(
    const std::vector<std::string>& texts) {
  std::vector<MapStageSpec> specs;
  for (const std::string& text : texts) {
    LayerSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec))
        << text;
    specs.push_back({spec.type(), spec.attr()});
  }
  return specs;
}

// A row of Src through the stages.
template <typename Dst, typename Src>
absl::StatusOr<std::vector<Dst>> MapRow(
    const std::vector<std::string>& stages, const Shape& shape,
    const std::vector<Src>& src,
    const std::optional<RowRandom>& random = std::nullopt) {
  ASSIGN_OR_RETURN(
      const MapChain chain,
      MapChain::Create(MapStages(stages), {DataTypeOf<Src>::kValue, shape}));
  EXPECT_EQ(chain.output().dtype, DataTypeOf<Dst>::kValue);
  // An element of `dst` that a stage leaves out shows.
  std::vector<Dst> dst(chain.output().shape.num_elements(), 77);
  MapChain::Scratch scratch = chain.MakeScratch();
  RETURN_IF_ERROR(
      chain.Apply(absl::MakeConstSpan(reinterpret_cast<const char*>(src.data()),
                                      src.size() * sizeof(Src)),
                  absl::MakeSpan(reinterpret_cast<char*>(dst.data()),
                                 dst.size() * sizeof(Dst)),
                  random, &scratch));
  return dst;
}

// All results of a random stage for one row: those of 500 examples.
template <typename T>
std::set<std::vector<T>> MapManyTimes(const std::string& stage,
                                      const Shape& shape,
                                      const std::vector<T>& src) {
  std::set<std::vector<T>> results;
  for (int64_t example = 0; example < 500; ++example) {
    const absl::StatusOr<std::vector<T>> row =
        MapRow<T>({stage}, shape, src, RowRandom(1, 0, example));
    EXPECT_TRUE(row.ok()) << row.status();
    if (row.ok()) results.insert(*row);
  }
  return results;
}

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_MAP_MAP_FIXTURE_H_
