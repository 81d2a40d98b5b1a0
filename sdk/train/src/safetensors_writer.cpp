#include <troupe/train/safetensors.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>
#include "posix.hpp"
#include "scalar_types.hpp"

namespace troupe {

using Declared = SafetensorsWriter::Declared;

struct SafetensorsWriter::State {
  std::string path;
  detail::PartFile file;
  std::map<std::string, Declared> tensors;
  std::map<std::string, std::int64_t> begins;   ///< First byte in the file.
  std::set<std::string> missing;
  bool is_sealed = false;
};

namespace {

struct Header {
  std::string bytes;
  std::map<std::string, std::int64_t> begins;
};

std::string declared_text(const Declared& declared) { return text(c10::toString(declared.dtype), " ", at::IntArrayRef(declared.shape)); }

Result<void> check_declared(const std::map<std::string, Declared>& tensors, const std::string& path) {
  for (const auto& [name, declared] : tensors) {
    const auto wrong = [&](const auto&... parts) { return fail(Errc::kInvalidArgument, text(path, ", tensor '", name, "': ", parts...)); };
    if (name == "__metadata__") return wrong("the format keeps this name for metadata");
    if (!detail::stored_name(declared.dtype)) return wrong("safetensors has no name for dtype ", c10::toString(declared.dtype));
    std::int64_t total = 16;   // no element is wider
    for (const std::int64_t dim : declared.shape) {
      if (dim < 0 || total > (std::int64_t{1} << 62) / std::max<std::int64_t>(dim, 1)) return wrong("no tensor can be ", declared_text(declared));
      total *= std::max<std::int64_t>(dim, 1);
    }
  }
  return {};
}

/// Wider dtypes first, then by name: each tensor begins on a multiple of its element, since data begin on 64 bytes.
std::map<std::string, std::int64_t> offsets_of(const std::map<std::string, Declared>& tensors) {
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [name, declared] : tensors) order.emplace_back(c10::elementSize(declared.dtype), name);
  std::ranges::stable_sort(order, std::greater(), &std::pair<std::size_t, std::string>::first);
  std::map<std::string, std::int64_t> out;
  std::int64_t at = 0;
  for (const auto& [width, name] : order) {
    out.emplace(name, at);
    at += tensors.at(name).bytes();
  }
  return out;
}

/// The length and the JSON, padded with spaces so that data begin on 64 bytes.
Result<Header> header_of(const std::map<std::string, Declared>& tensors, const std::map<std::string, std::string>& metadata, const std::string& path) {
  if (auto ok = check_declared(tensors, path); !ok) return fail(ok.error());
  Header out;
  out.begins = offsets_of(tensors);
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  for (const auto& [name, declared] : tensors) {
    const std::int64_t begin = out.begins.at(name);
    json[name] = {{"dtype", *detail::stored_name(declared.dtype)}, {"shape", declared.shape}, {"data_offsets", {begin, begin + declared.bytes()}}};
  }
  std::string content;
  try {
    content = json.dump();
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::kInvalidArgument, text(path, ": a name of a tensor or of its metadata is not UTF-8"));
  }
  content.resize((content.size() + 8 + 63) / 64 * 64 - 8, ' ');
  if (std::ssize(content) > kMaxSafetensorsHeader) return fail(Errc::kInvalidArgument, text(path, ": its header would have ", content.size(), " bytes, at most ", kMaxSafetensorsHeader, " are read"));
  const std::uint64_t length = content.size();
  out.bytes.resize(sizeof length);
  std::memcpy(out.bytes.data(), &length, sizeof length);
  out.bytes += content;
  for (auto& [name, begin] : out.begins) begin += std::ssize(out.bytes);
  return out;
}

/// The values as the file holds them: on the host, contiguous.
Result<at::Tensor> packed(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined() || tensor.is_meta() || tensor.layout() != at::kStrided) return fail(Errc::kInvalidArgument, text(what, ": only a dense tensor with data can be written"));
  try {
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  } catch (...) {
    return fail(error_from_current_exception(Errc::kOutOfMemory));
  }
}

}  // namespace

std::int64_t SafetensorsWriter::Declared::bytes() const {
  std::int64_t out = static_cast<std::int64_t>(c10::elementSize(dtype));
  for (const std::int64_t dim : shape) out *= dim;
  return out;
}

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, const std::map<std::string, Declared>& tensors, const std::map<std::string, std::string>& metadata) {
  auto header = header_of(tensors, metadata, path);
  if (!header) return fail(header.error());
  auto file = detail::PartFile::create(path);
  if (!file) return fail(file.error());
  if (auto ok = file->write(header->bytes.data(), 0, std::ssize(header->bytes)); !ok) return fail(ok.error());
  std::set<std::string> missing;
  for (const auto& [name, declared] : tensors) missing.insert(name);
  return SafetensorsWriter(std::unique_ptr<State>(new State{path, std::move(*file), tensors, std::move(header->begins), std::move(missing)}));
}

Result<void> SafetensorsWriter::write(const std::string& name, const at::Tensor& tensor) {
  State& s = *state_;
  const std::string what = text(s.path, ", tensor '", name, "'");
  const auto found = s.tensors.find(name);
  if (found == s.tensors.end()) return fail(Errc::kMismatch, text(what, ": was not declared"));
  if (!s.missing.contains(name)) return fail(Errc::kMismatch, text(what, ": was written before"));
  const Declared& declared = found->second;
  if (tensor.defined() && (tensor.scalar_type() != declared.dtype || tensor.sizes() != at::IntArrayRef(declared.shape))) {
    return fail(Errc::kMismatch, text(what, ": declared as ", declared_text(declared), ", got ", declared_text({tensor.scalar_type(), tensor.sizes().vec()})));
  }
  const auto values = packed(tensor, what);
  if (!values) return fail(values.error());
  if (auto ok = s.file.write(values->const_data_ptr(), s.begins.at(name), static_cast<std::int64_t>(values->nbytes())); !ok) return ok;
  s.missing.erase(name);
  return {};
}

Result<void> SafetensorsWriter::seal() {
  State& s = *state_;
  if (s.is_sealed) return {};
  if (!s.missing.empty()) return fail(Errc::kMismatch, text(s.path, ": ", s.missing.size(), " declared tensors were not written, the first is '", *s.missing.begin(), "'"));
  auto ok = s.file.seal();
  s.is_sealed = ok.has_value();
  return ok;
}

Result<void> SafetensorsWriter::finish() {
  if (auto ok = seal(); !ok) return ok;
  return state_->file.place();
}

Result<void> write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors, const std::map<std::string, std::string>& metadata) {
  std::map<std::string, Declared> declared;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) return fail(Errc::kInvalidArgument, text(path, ", tensor '", name, "': is undefined"));
    declared.emplace(name, Declared{tensor.scalar_type(), tensor.sizes().vec()});
  }
  auto writer = SafetensorsWriter::create(path, declared, metadata);
  if (!writer) return fail(writer.error());
  for (const auto& [name, tensor] : tensors) {
    if (auto ok = writer->write(name, tensor); !ok) return ok;
  }
  return writer->finish();
}

}  // namespace troupe
