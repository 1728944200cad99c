#include "worker/backend/cpu/dnnl_layout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// The weights of a grouped convolution; nothing else has this rank.
constexpr int kGroupedRank = 5;

dnnl::memory::dims DimsOf(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

dnnl::memory::dims RowMajorStrides(const Shape& shape) {
  dnnl::memory::dims strides(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * shape.dim(i + 1);
  }
  return strides;
}

// Our shape of oneDNN's dimensions.
absl::StatusOr<Shape> ShapeOf(const dnnl_memory_desc_t& desc) {
  const absl::Span<const int64_t> dims(desc.dims, desc.ndims);
  if (desc.ndims != kGroupedRank) return Shape::Create(dims);
  std::vector<int64_t> joined(dims.begin() + 1, dims.end());
  joined[0] *= dims[0];
  return Shape::Create(joined);
}

// A stride along a dimension of size 1 is never used, so it may differ: that
// makes nchw and nhwc with one channel the same.
bool IsRowMajor(const dnnl_memory_desc_t& desc) {
  if (desc.format_desc.blocking.inner_nblks != 0) return false;
  int64_t stride = 1;
  for (int i = desc.ndims - 1; i >= 0; --i) {
    if (desc.dims[i] == 1) continue;
    if (desc.format_desc.blocking.strides[i] != stride) return false;
    stride *= desc.dims[i];
  }
  return true;
}

std::string FormatOf(const dnnl_memory_desc_t& desc) {
  const dnnl_blocking_desc_t& blocking = desc.format_desc.blocking;
  std::vector<std::string> blocks;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    blocks.push_back(absl::StrCat(
        blocking.inner_blks[i],
        std::string(1, static_cast<char>('a' + blocking.inner_idxs[i]))));
  }
  return absl::StrCat(
      desc.ndims == kGroupedRank ? absl::StrCat("groups ", desc.dims[0], " ")
                                 : "",
      "strides ",
      absl::StrJoin(blocking.strides, blocking.strides + desc.ndims, ","),
      " blocks ", absl::StrJoin(blocks, ","));
}

absl::Status FormatError(const MemoryLayout& layout) {
  return absl::InvalidArgumentError(
      absl::StrCat("layout ", layout.ToString(),
                   ": not a format of the cpu backend; layouts come from its "
                   "primitives or are row-major"));
}

// Reads "8b,4a" into the inner blocks.
bool ParseBlocks(absl::string_view text, int rank,
                 dnnl_blocking_desc_t* blocking) {
  if (text.empty()) return true;
  for (const absl::string_view block : absl::StrSplit(text, ',')) {
    const int i = blocking->inner_nblks;
    if (block.size() < 2 || i == DNNL_MAX_NDIMS) return false;
    const int dim = block.back() - 'a';
    int64_t size;
    if (dim < 0 || dim >= rank ||
        !absl::SimpleAtoi(block.substr(0, block.size() - 1), &size) ||
        size < 1) {
      return false;
    }
    blocking->inner_blks[i] = size;
    blocking->inner_idxs[i] = dim;
    ++blocking->inner_nblks;
  }
  return true;
}

bool ParseStrides(absl::string_view text, int rank,
                  dnnl_blocking_desc_t* blocking) {
  const std::vector<absl::string_view> strides = absl::StrSplit(text, ',');
  if (static_cast<int>(strides.size()) != rank) return false;
  for (int i = 0; i < rank; ++i) {
    int64_t stride;
    if (!absl::SimpleAtoi(strides[i], &stride)) return false;
    blocking->strides[i] = stride;
  }
  return true;
}

// The dimensions of a layout of this shape, for which "groups G" is taken from
// the words of its format.
bool TakeDims(const Shape& shape, std::vector<absl::string_view>* words,
              dnnl_memory_desc_t* desc) {
  dnnl::memory::dims dims = DimsOf(shape);
  if (words->front() == "groups") {
    int64_t groups;
    if (words->size() < 2 || shape.rank() != kGroupedRank - 1 ||
        !absl::SimpleAtoi((*words)[1], &groups) || groups < 1 ||
        dims[0] % groups != 0) {
      return false;
    }
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    words->erase(words->begin(), words->begin() + 2);
  }
  desc->ndims = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), desc->dims);
  return true;
}

// Dimensions rounded up to whole blocks.
void SetPaddedDims(dnnl_memory_desc_t* desc) {
  const dnnl_blocking_desc_t& blocking = desc->format_desc.blocking;
  dnnl_dims_t block;
  for (int i = 0; i < desc->ndims; ++i) block[i] = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    block[blocking.inner_idxs[i]] *= blocking.inner_blks[i];
  }
  for (int i = 0; i < desc->ndims; ++i) {
    desc->padded_dims[i] = (desc->dims[i] + block[i] - 1) / block[i] * block[i];
  }
}

}  // namespace

absl::StatusOr<MemoryLayout> LayoutOf(const dnnl::memory::desc& desc) {
  const dnnl_memory_desc_t& data = desc.data;
  if (data.format_kind != dnnl_blocked || data.data_type != dnnl_f32) {
    return absl::UnimplementedError(
        "layout of a oneDNN primitive: neither plain nor blocked float32");
  }
  ASSIGN_OR_RETURN(const Shape shape, ShapeOf(data));
  if (IsRowMajor(data)) return MemoryLayout::RowMajor(FLOAT32, shape);
  const MemoryLayout layout = {FLOAT32, shape, FormatOf(data),
                               static_cast<int64_t>(desc.get_size())};
  ASSIGN_OR_RETURN(const dnnl::memory::desc again, DnnlDescOf(layout));
  if (again != desc) {
    return absl::UnimplementedError(
        absl::StrCat("layout of a oneDNN primitive: ", layout.ToString(),
                     " does not say all of it"));
  }
  return layout;
}

absl::StatusOr<dnnl::memory::desc> DnnlDescOf(const MemoryLayout& layout) {
  const int rank = layout.shape.rank();
  if (layout.dtype != FLOAT32 || rank < 1) return FormatError(layout);
  if (layout.is_row_major()) {
    return dnnl::memory::desc(DimsOf(layout.shape),
                              dnnl::memory::data_type::f32,
                              RowMajorStrides(layout.shape));
  }
  std::vector<absl::string_view> words = absl::StrSplit(layout.format, ' ');
  dnnl_memory_desc_t desc = {};
  if (!TakeDims(layout.shape, &words, &desc)) return FormatError(layout);
  desc.data_type = dnnl_f32;
  desc.format_kind = dnnl_blocked;
  if (words.size() != 4 || words[0] != "strides" || words[2] != "blocks" ||
      !ParseStrides(words[1], desc.ndims, &desc.format_desc.blocking) ||
      !ParseBlocks(words[3], desc.ndims, &desc.format_desc.blocking)) {
    return FormatError(layout);
  }
  SetPaddedDims(&desc);
  const dnnl::memory::desc result(desc);
  if (static_cast<int64_t>(result.get_size()) != layout.size_bytes) {
    return FormatError(layout);
  }
  return result;
}

std::optional<MemoryLayout> Stacked(const MemoryLayout& layout, int64_t count) {
  if (layout.is_row_major()) return StackRowMajor(layout, count);
  const absl::StatusOr<dnnl::memory::desc> one = DnnlDescOf(layout);
  if (!one.ok() || one->data.ndims != layout.shape.rank()) return std::nullopt;
  // Rows must lie one behind another, each in one piece.
  const int64_t row = one->data.format_desc.blocking.strides[0];
  if (one->data.padded_dims[0] != one->data.dims[0] ||
      row * one->data.dims[0] * static_cast<int64_t>(sizeof(float)) !=
          layout.size_bytes) {
    return std::nullopt;
  }
  dnnl::memory::desc stacked = *one;
  stacked.data.dims[0] *= count;
  stacked.data.padded_dims[0] *= count;
  absl::StatusOr<MemoryLayout> result = LayoutOf(stacked);
  if (!result.ok()) return std::nullopt;
  return *std::move(result);
}

int64_t OffsetOf(const dnnl::memory::desc& desc,
                 absl::Span<const int64_t> index) {
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  dnnl_dims_t outer = {};
  std::copy(index.begin(), index.end(), outer);
  int64_t offset = 0, stride = 1;
  // The last block is the innermost.
  for (int i = blocking.inner_nblks - 1; i >= 0; --i) {
    const int64_t block = blocking.inner_blks[i];
    int64_t& within = outer[blocking.inner_idxs[i]];
    offset += within % block * stride;
    within /= block;
    stride *= block;
  }
  for (int i = 0; i < desc.data.ndims; ++i) {
    offset += outer[i] * blocking.strides[i];
  }
  return offset;
}

dnnl::memory::desc AnyLayout(const Shape& shape) {
  return dnnl::memory::desc(DimsOf(shape), dnnl::memory::data_type::f32,
                            dnnl::memory::format_tag::any);
}

MemoryLayout BytesLayout(int64_t size_bytes) {
  return MemoryLayout::RowMajor(UINT8, {size_bytes});
}

int64_t ChannelBlock(const MemoryLayout& layout) {
  if (layout.shape.rank() != 4 || layout.is_row_major()) return 0;
  for (const int64_t block : {8, 16}) {
    if (layout == ChannelBlockedLayout(layout.shape, block)) return block;
  }
  return 0;
}

MemoryLayout ChannelBlockedLayout(const Shape& shape, int64_t block) {
  const int64_t channel_blocks = (shape.dim(1) + block - 1) / block;
  const int64_t width = shape.dim(3), area = shape.dim(2) * width;
  const int64_t image = channel_blocks * area * block;
  return {FLOAT32, shape,
          absl::StrCat("strides ", image, ",", area * block, ",", width * block,
                       ",", block, " blocks ", block, "b"),
          shape.dim(0) * image * static_cast<int64_t>(sizeof(float))};
}

}  // namespace muster
