#include "tar.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>
#include <utility>

#include <troupe/base/text.hpp>

namespace qwen_vl {

using troupe::Errc;
using troupe::Result;
using troupe::text;

namespace {

constexpr std::int64_t kBlock = 512;
constexpr std::int64_t kMaxExtension = std::int64_t{1} << 20;   // bytes of a long name or pax header

/// A field of a header: where, and how many bytes. Source: POSIX.1-2017, ustar.
struct Field {
  std::size_t offset;
  std::size_t length;
};
constexpr Field kName = {0, 100}, kSize = {124, 12}, kChecksum = {148, 8}, kMagic = {257, 6}, kPrefix = {345, 155};
constexpr std::size_t kType = 156;

std::string_view bytes_of(std::string_view header, Field field) { return header.substr(field.offset, field.length); }
/// Up to the first zero byte.
std::string_view string_of(std::string_view bytes) { return bytes.substr(0, bytes.find('\0')); }

/// Octal digits between spaces and zero bytes, or GNU's base 256 for what they can't hold.
std::optional<std::int64_t> number_of(std::string_view bytes) {
  if (static_cast<unsigned char>(bytes.front()) == 0x80) {
    const std::string_view low = bytes.substr(bytes.size() - 8);
    if (bytes.substr(1, bytes.size() - 9).find_first_not_of('\0') != std::string_view::npos) return std::nullopt;
    const auto value = std::accumulate(low.begin(), low.end(), std::uint64_t{0}, [](std::uint64_t sum, char byte) { return sum << 8 | static_cast<unsigned char>(byte); });
    return value >> 63 != 0 ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
  }
  bytes.remove_prefix(std::min(bytes.find_first_not_of(' '), bytes.size()));
  bytes = bytes.substr(0, bytes.find_first_of(std::string_view(" \0", 2)));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), value, 8);
  if (bytes.empty()) return 0;
  return error == std::errc() && end == bytes.data() + bytes.size() && value >= 0 ? std::optional(value) : std::nullopt;
}

/// The sum of a header's bytes with its checksum field as spaces.
std::int64_t checksum_of(std::string_view header) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    sum += own ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

std::string name_of(std::string_view header) {
  const std::string name(string_of(bytes_of(header, kName)));
  const bool posix = bytes_of(header, kMagic) == std::string_view("ustar\0", 6);   // GNU's own magic has other fields there
  const std::string_view prefix = posix ? string_of(bytes_of(header, kPrefix)) : std::string_view();
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

bool is_zero(std::string_view block) { return block.find_first_not_of('\0') == std::string_view::npos; }

std::int64_t padded(std::int64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

/// Calls `take(key, value)` for each "LENGTH key=value\n". False when it is none.
template <class Take>
bool for_each_pax(std::string_view records, const Take& take) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(end - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 4 || records[digits] != ' ' || records[length - 1] != '\n') return false;
    const std::string_view pair = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || !take(pair.substr(0, equals), pair.substr(equals + 1))) return false;
    records.remove_prefix(length);
  }
  return true;
}

/// What a header's type means here.
enum class Kind : std::uint8_t { kFile, kFolder, kExtension, kOther };
Kind kind_of(char type) {
  if (type == '0' || type == '\0' || type == '7') return Kind::kFile;
  if (type == '5') return Kind::kFolder;
  return std::string_view("LKxg").find(type) != std::string_view::npos ? Kind::kExtension : Kind::kOther;
}

}  // namespace

template <class... Parts>
tl::unexpected<troupe::Error> TarReader::wrong(std::int64_t offset, const Parts&... parts) const {
  return troupe::fail(Errc::kBadData, text(path(), ": at byte ", offset, ": ", parts...));
}

Result<TarReader> TarReader::open(const std::string& path) {
  auto file = FileBytes::open(path);
  if (!file) return troupe::fail(file.error());
  const auto head = file->read(0, 4);
  if (!head) return troupe::fail(head.error());
  for (const auto& [magic, name] : {std::pair{std::string_view("\x1f\x8b"), "gzip"}, std::pair{std::string_view("\x28\xb5\x2f\xfd"), "zstd"}, std::pair{std::string_view("BZh"), "bzip2"}}) {
    if (head->starts_with(magic)) return troupe::fail(Errc::kBadData, text(path, ": is compressed with ", name, "; unpack it first, pictures hardly shrink"));
  }
  return TarReader(std::move(*file));
}

Result<std::string> TarReader::extension(const TarMember& member) const {
  if (member.size > kMaxExtension) return wrong(member.header, "an extension header of ", member.size, " bytes; at most ", kMaxExtension, " are read");
  return read(member);
}

Result<void> TarReader::extend(char type, const TarMember& member, Pending& pending) const {
  const auto content = extension(member);
  if (!content) return troupe::fail(content.error());
  if (type == 'L') pending.name = std::string(string_of(*content));
  if (type != 'x') return {};   // 'K' is of links, 'g' of whole archives: nothing that we read
  const bool good = for_each_pax(*content, [&](std::string_view key, std::string_view value) {
    if (key == "path") pending.name = std::string(value);
    if (key.starts_with("GNU.sparse.")) return false;
    if (key != "size") return true;
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    pending.size = size;
    return error == std::errc() && end == value.data() + value.size() && size >= 0;
  });
  if (!good) return wrong(member.header, "a broken or sparse pax header");
  return {};
}

Result<std::optional<TarMember>> TarReader::next() {
  Pending pending;
  for (;;) {
    const auto header = file_.read(at_, kBlock);
    if (!header) return troupe::fail(header.error());
    const std::string after = last_.empty() ? "" : text(" after member '", last_, "'");
    if (std::ssize(*header) < kBlock) return wrong(at_, "the archive ends", after, " without the zero block that closes one; is it cut short?");
    if (is_zero(*header)) {
      if (pending.name || pending.size) return wrong(at_, "the archive ends", after, " where an extension header announces a member");
      return std::nullopt;
    }
    const auto checksum = number_of(bytes_of(*header, kChecksum));
    if (!checksum || *checksum != checksum_of(*header)) return wrong(at_, "expected a tar header", after, ", got bytes whose checksum is wrong; not a tar, or broken before here");
    const auto size = pending.size ? pending.size : number_of(bytes_of(*header, kSize));
    TarMember member{pending.name.value_or(name_of(*header)), at_, at_ + kBlock, size.value_or(-1)};
    if (!size) return wrong(at_, "member '", member.name, "' has no valid size");
    if (member.size > file_.size() - member.offset) {
      return wrong(at_, "member '", member.name, "': expected ", member.size, " bytes, the archive holds ", file_.size() - member.offset, " more; is it cut short?");
    }
    const char type = (*header)[kType];
    at_ = member.offset + padded(member.size);
    const Kind kind = kind_of(type);
    if (kind == Kind::kOther) return wrong(member.header, "member '", member.name, "' is a link or special file (type '", type, "'); expected plain files only");
    if (kind == Kind::kExtension) {
      if (auto ok = extend(type, member, pending); !ok) return troupe::fail(ok.error());
      continue;
    }
    pending = {};
    last_ = member.name;
    if (kind == Kind::kFile && !member.name.ends_with('/')) return member;   // archives older than ustar mark folders by the slash
  }
}

Result<std::string> TarReader::read(const TarMember& member) const {
  auto out = file_.read(member.offset, member.size);
  if (out && std::ssize(*out) != member.size) {
    return troupe::fail(Errc::kIo, text(path(), ": member '", member.name, "' at byte ", member.header, ": expected ", member.size, " bytes, could read ", out->size(), "; was the archive changed?"));
  }
  return out;
}

}  // namespace qwen_vl
