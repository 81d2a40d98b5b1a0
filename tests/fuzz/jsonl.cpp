// Any bytes as a record, and as a file of records: refused by name, or with as many pictures as placeholders.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "record_index.hpp"
#include "records.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::size_t parts_of(const qwen_vl::Record& record, qwen_vl::Part::Kind kind) {
  std::size_t out = 0;
  for (const auto& turn : record.conversation.turns) out += static_cast<std::size_t>(std::ranges::count(turn.parts, kind, &qwen_vl::Part::kind));
  return out;
}

void check_record(std::string_view bytes) {
  const auto record = qwen_vl::parse_record(bytes, "input:1");
  if (!record) {
    require(record.error().message.starts_with("input:1: "));
    require(record.error().code == troupe::Errc::kBadData || record.error().code == troupe::Errc::kMismatch);
    return;
  }
  require(!record->conversation.turns.empty());
  require(record->pictures.size() == parts_of(*record, qwen_vl::Part::Kind::kImage));
  require(record->videos.size() == parts_of(*record, qwen_vl::Part::Kind::kVideo));
}

troupe::Result<std::vector<qwen_vl::RecordPlace>> places_of(std::string_view bytes, std::size_t chunk) {
  qwen_vl::RecordIndex index("input");
  for (; !bytes.empty(); bytes.remove_prefix(std::min(chunk, bytes.size()))) {
    if (auto ok = index.feed(bytes.substr(0, chunk)); !ok) return troupe::fail(ok.error());
  }
  return index.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_record(bytes);
  const auto places = places_of(bytes, size + 1);
  const auto again = places_of(bytes, 3);
  require(places.has_value() == again.has_value());
  if (!places) {
    require(places.error().message == again.error().message && places.error().message.starts_with("input"));
    return 0;
  }
  require(*places == *again);
  std::int64_t at = 0;
  for (const auto& place : *places) {
    require(place.offset >= at && place.length > 0 && place.offset + place.length <= std::ssize(bytes));
    at = place.offset + place.length;
    if (places->size() > 1) check_record(bytes.substr(static_cast<std::size_t>(place.offset), static_cast<std::size_t>(place.length)));
  }
  return 0;
}
