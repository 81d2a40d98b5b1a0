#include <troupe/train/safetensors_header.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>
#include "dtypes.hpp"

namespace troupe {
namespace {

using nlohmann::json;

constexpr std::int64_t kLengthBytes = 8;

/// nlohmann's text without its tag, and without the token it quotes, which may be the whole file or no UTF-8.
std::string reason_of(const json::exception& error) {
  std::string out = error.what();
  if (const auto tag = out.find("] "); out.starts_with('[') && tag != std::string::npos) out.erase(0, tag + 2);
  return out.substr(0, std::min(out.find("; last read"), std::size_t{200}));
}

/// JSON as the format means it: a key twice in one object would be kept as the last one, deep nesting would make printing recurse.
Result<json> parse(std::string_view content, const std::string& name) {
  constexpr int kDeepest = 8;
  std::vector<std::set<std::string>> keys;   // of the objects that are open
  const auto refuse = [&](const auto&... parts) { throw Exception(Error{.code = Errc::kBadData, .message = text(name, ": ", parts...)}); };
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kDeepest) refuse("its JSON is nested deeper than ", kDeepest, " levels");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) refuse("'", value.get<std::string>(), "' occurs twice in one object of its JSON");
    return true;
  };
  if (!content.starts_with('{')) return fail(Errc::kBadData, text(name, ": its JSON must begin with '{'"));
  try {
    return json::parse(content.begin(), content.end(), watch);
  } catch (const Exception& error) {
    return fail(error.error());
  } catch (const json::exception& error) {
    return fail(Errc::kBadData, text(name, ": is not JSON: ", reason_of(error)));
  }
}

std::optional<std::int64_t> bytes_of(std::string_view dtype) {
  for (const auto& type : detail::kStoredTypes) {
    if (type.name == dtype) return type.bytes;
  }
  return std::nullopt;
}

/// dtype x shape in bytes; nullopt past 2^62, also when only a dim of 0 keeps it below: strides would overflow.
std::optional<std::int64_t> size_of(std::int64_t bytes, const std::vector<std::int64_t>& shape) {
  std::int64_t size = bytes;
  for (const std::int64_t dim : shape) {
    if (size > (std::int64_t{1} << 62) / std::max<std::int64_t>(dim, 1)) return std::nullopt;
    size *= std::max<std::int64_t>(dim, 1);
  }
  return std::ranges::find(shape, 0) == shape.end() ? size : 0;
}

bool is_whole(const json& value) { return value.is_number_unsigned() && value.get<std::uint64_t>() < (std::uint64_t{1} << 62); }

Result<StoredTensor> read_entry(const json& entry, const std::string& what, std::int64_t data_bytes) {
  const auto wrong = [&](const auto&... parts) { return fail(Errc::kBadData, text(what, ": ", parts...)); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets")) {
    return wrong("expected an object with dtype, shape and data_offsets, got ", entry.dump().substr(0, 80));
  }
  const json& dtype = entry.at("dtype");
  const json& shape = entry.at("shape");
  const json& offsets = entry.at("data_offsets");
  StoredTensor out;
  const auto width = dtype.is_string() ? bytes_of(dtype.get_ref<const std::string&>()) : std::nullopt;
  if (!width) return wrong("unknown dtype ", dtype.dump().substr(0, 40));
  out.dtype = dtype.get<std::string>();
  if (!shape.is_array() || !std::ranges::all_of(shape, is_whole)) return wrong("shape must be a list of whole numbers, got ", shape.dump().substr(0, 80));
  out.shape = shape.get<std::vector<std::int64_t>>();
  if (!offsets.is_array() || offsets.size() != 2 || !std::ranges::all_of(offsets, is_whole)) return wrong("data_offsets must be two whole numbers, got ", offsets.dump().substr(0, 80));
  out.begin = offsets[0].get<std::int64_t>();
  const auto end = offsets[1].get<std::int64_t>();
  const auto size = size_of(*width, out.shape);
  if (!size) return wrong("dtype ", out.dtype, " x shape ", shape.dump().substr(0, 80), " overflows");
  if (end < out.begin || end - out.begin != *size) return wrong("data_offsets [", out.begin, ", ", end, ") hold ", end - out.begin, " bytes, dtype x shape needs ", *size);
  if (end > data_bytes) return wrong("data_offsets end at ", end, ", the file has ", data_bytes, " bytes of data; is it cut short?");
  out.bytes = *size;
  return out;
}

/// Data is contiguous and without holes, as the format demands.
Result<void> check_cover(const std::map<std::string, StoredTensor>& tensors, std::int64_t data_bytes, const std::string& name) {
  std::vector<std::pair<const std::string*, const StoredTensor*>> order;
  for (const auto& [key, tensor] : tensors) order.emplace_back(&key, &tensor);
  std::ranges::sort(order, {}, [](const auto& one) { return std::pair(one.second->begin, one.second->bytes); });
  std::int64_t at = 0;
  for (const auto& [key, tensor] : order) {
    if (tensor->begin != at) {
      return fail(Errc::kBadData, text(name, ", tensor '", *key, "': its data begin at ", tensor->begin, ", the one before ends at ", at, "; data must neither overlap nor leave holes"));
    }
    at += tensor->bytes;
  }
  if (at != data_bytes) return fail(Errc::kBadData, text(name, ": the tensors have ", at, " bytes in all, the file has ", data_bytes, " bytes of data"));
  return {};
}

Result<std::map<std::string, std::string>> read_metadata(const json& entry, const std::string& name) {
  std::map<std::string, std::string> out;
  if (!entry.is_object()) return fail(Errc::kBadData, text(name, ": __metadata__ must be an object"));
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return fail(Errc::kBadData, text(name, ": __metadata__['", key, "'] must be a string"));
    out.emplace(key, value.get<std::string>());
  }
  return out;
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view bytes, std::int64_t file_size, const std::string& name) {
  const auto wrong = [&](const auto&... parts) { return fail(Errc::kBadData, text(name, ": ", parts...)); };
  if (file_size < kLengthBytes || bytes.size() < kLengthBytes) return wrong("is cut short: a safetensors file has at least 8 bytes, got ", file_size);
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeader)) return wrong("its header claims ", length, " bytes; at most ", kMaxSafetensorsHeader, " are read. Is it a safetensors file?");
  const auto header_bytes = static_cast<std::int64_t>(length);
  if (kLengthBytes + header_bytes > file_size) return wrong("is cut short: its header needs ", kLengthBytes + header_bytes, " bytes, the file has ", file_size);
  if (bytes.size() < static_cast<std::size_t>(kLengthBytes + header_bytes)) return wrong("the header was not given in whole");
  const auto root = parse(bytes.substr(kLengthBytes, static_cast<std::size_t>(header_bytes)), text(name, ", header"));
  if (!root) return fail(root.error());
  SafetensorsHeader out;
  out.data_begin = kLengthBytes + header_bytes;
  const std::int64_t data_bytes = file_size - out.data_begin;
  for (const auto& [key, entry] : root->items()) {
    if (key == "__metadata__") {
      auto metadata = read_metadata(entry, name);
      if (!metadata) return fail(metadata.error());
      out.metadata = std::move(*metadata);
      continue;
    }
    auto tensor = read_entry(entry, text(name, ", tensor '", key, "'"), data_bytes);
    if (!tensor) return fail(tensor.error());
    out.tensors.emplace(key, std::move(*tensor));
  }
  if (auto ok = check_cover(out.tensors, data_bytes, name); !ok) return fail(ok.error());
  for (auto& [key, tensor] : out.tensors) tensor.begin += out.data_begin;
  return out;
}

Result<std::map<std::string, std::string>> parse_weight_map(std::string_view content, const std::string& name) {
  const auto root = parse(content, name);
  if (!root) return fail(root.error());
  if (!root->contains("weight_map") || !root->at("weight_map").is_object()) return fail(Errc::kBadData, text(name, ": expected a JSON object 'weight_map' in it"));
  std::map<std::string, std::string> out;
  for (const auto& [tensor, file] : root->at("weight_map").items()) {
    std::string shard = file.is_string() ? file.get<std::string>() : "";
    if (shard.empty() || shard == "." || shard == ".." || shard.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      return fail(Errc::kBadData, text(name, ": weight_map['", tensor, "'] must be the name of a file in the folder, got ", file.dump().substr(0, 80)));
    }
    out.emplace(tensor, std::move(shard));
  }
  return out;
}

}  // namespace troupe
