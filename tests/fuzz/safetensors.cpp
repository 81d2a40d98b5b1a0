// Any bytes as a safetensors file and as a checkpoint's index: refused by name, or tensors that fill the data exactly.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <troupe/train/safetensors_header.hpp>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check(std::string_view file, std::int64_t file_size) {
  const auto header = troupe::parse_safetensors_header(file, file_size, "input");
  if (!header) {
    require(header.error().code == troupe::Errc::kBadData && header.error().message.starts_with("input"));
    return;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const auto& [name, tensor] : header->tensors) {
    require(tensor.bytes >= 0);
    for (const std::int64_t dim : tensor.shape) require(dim >= 0);
    places.emplace_back(tensor.begin, tensor.bytes);
  }
  std::sort(places.begin(), places.end());
  std::int64_t at = header->data_begin;
  for (const auto& [begin, bytes] : places) {
    require(begin == at);
    at += bytes;
  }
  require(at == file_size);
}

/// The length that makes a file of JSON and data.
std::string with_length(std::string_view json, std::string_view data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return out.append(json).append(data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes, std::ssize(bytes));
  // mutations seldom keep the length right: the same input as JSON, a zero byte, data
  const std::size_t zero = std::min(bytes.find('\0'), size);
  const std::string file = with_length(bytes.substr(0, zero), bytes.substr(std::min(zero + 1, size)));
  check(file, std::ssize(file));
  const auto map = troupe::parse_weight_map(bytes, "input");
  if (!map) require(map.error().code == troupe::Errc::kBadData && map.error().message.starts_with("input"));
  return 0;
}
