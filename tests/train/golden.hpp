#pragma once

#include <cstring>
#include <map>
#include <string>

#include <ATen/ATen.h>

namespace troupe {

/// As value_of() of tests/golden/files/make.py: i % 8 - 2, or i % 8 where there is no sign, i % 2 for bools.
inline at::Tensor golden_value(at::IntArrayRef shape, c10::ScalarType type) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  const at::Tensor index = at::arange(count, at::kLong).remainder(8);
  if (type == at::kBool) return index.remainder(2).to(at::kBool).reshape(shape);
  const bool has_sign = type != at::kByte && type != at::kUInt16 && type != at::kUInt32 && type != at::kUInt64;
  return (has_sign ? index.sub(2) : index).to(at::kFloat).to(type).reshape(shape);
}

/// What make.py writes into types.safetensors.
inline std::map<std::string, at::Tensor> golden_tensors() {
  std::map<std::string, at::Tensor> out;
  const auto add = [&](const char* name, std::initializer_list<std::int64_t> shape, c10::ScalarType type) { out.emplace(name, golden_value(shape, type)); };
  add("F64", {3, 5}, at::kDouble);
  add("F32", {2, 3, 4}, at::kFloat);
  add("F16", {7}, at::kHalf);
  add("BF16", {5, 3}, at::kBFloat16);
  add("F8_E4M3", {3, 3}, at::kFloat8_e4m3fn);
  add("F8_E5M2", {9}, at::kFloat8_e5m2);
  add("I64", {4, 2}, at::kLong);
  add("I32", {2, 2, 2}, at::kInt);
  add("I16", {5}, at::kShort);
  add("I8", {3, 2}, at::kChar);
  add("U8", {11}, at::kByte);
  add("BOOL", {6, 2}, at::kBool);
  add("U16", {3}, at::kUInt16);
  add("U32", {3}, at::kUInt32);
  add("U64", {2}, at::kUInt64);
  add("scalar", {}, at::kFloat);
  add("empty", {3, 0, 2}, at::kDouble);
  return out;
}

/// Same dtype, shape and bits; at::equal() does not know every dtype.
inline bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor a = left.contiguous(), b = right.contiguous();
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

}  // namespace troupe
