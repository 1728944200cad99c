#include "common/tensor/dtype.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace muster {
namespace {

template <typename T>
void ExpectMatches(DataType dtype, absl::string_view name) {
  EXPECT_EQ(SizeOf(dtype), sizeof(T));
  EXPECT_EQ(DataTypeOf<T>::kValue, dtype);
  EXPECT_EQ(DataTypeName(dtype), name);
}

TEST(DataTypeTest, SizesNamesAndElementTypesAgree) {
  ExpectMatches<float>(FLOAT32, "float32");
  ExpectMatches<double>(FLOAT64, "float64");
  ExpectMatches<int64_t>(INT64, "int64");
  ExpectMatches<int32_t>(INT32, "int32");
  ExpectMatches<uint8_t>(UINT8, "uint8");
}

TEST(DataTypeTest, EveryTypeOfTheProtocolHasASize) {
  for (int i = DataType_MIN + 1; i <= DataType_MAX; ++i) {
    ASSERT_TRUE(DataType_IsValid(i));
    EXPECT_GT(SizeOf(static_cast<DataType>(i)), 0u);
  }
}

TEST(DataTypeTest, AnUnknownTypeHasNoSize) {
  EXPECT_EQ(SizeOf(DATA_TYPE_UNSPECIFIED), 0u);
  // As a newer peer may send it.
  EXPECT_EQ(SizeOf(static_cast<DataType>(99)), 0u);
  EXPECT_EQ(DataTypeName(static_cast<DataType>(99)), "unspecified");
}

}  // namespace
}  // namespace muster
