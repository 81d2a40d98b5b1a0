#include <troupe/train/safetensors.hpp>

#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <troupe/base/text.hpp>
#include "files.hpp"
#include "scalar_types.hpp"

namespace troupe {

struct SafetensorsWriter::State {
  ~State() {
    if (file < 0) return;
    ::close(file);
    ::unlink(part.c_str());
  }
  std::string path, part;
  int file = -1;   ///< Open until finished.
  std::map<std::string, Declared> tensors;
  std::map<std::string, Declared>::const_iterator next;
};

namespace {

/// The length and the JSON, padded with spaces so that data begins on 64 bytes.
Result<std::string> header_of(const std::map<std::string, SafetensorsWriter::Declared>& tensors, const std::map<std::string, std::string>& metadata, const std::string& path) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::int64_t at = 0;
  for (const auto& [name, declared] : tensors) {
    const auto dtype = detail::stored_name(declared.dtype);
    if (!dtype) return fail(Errc::kInvalidArgument, text(path, ", tensor '", name, "': safetensors has no name for dtype ", c10::toString(declared.dtype)));
    std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(declared.dtype));
    for (const std::int64_t dim : declared.shape) bytes *= dim;
    json[name] = {{"dtype", *dtype}, {"shape", declared.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string content = json.dump();
  content.resize((content.size() + 8 + 63) / 64 * 64 - 8, ' ');
  const std::uint64_t length = content.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + content;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, const std::map<std::string, Declared>& tensors, const std::map<std::string, std::string>& metadata) {
  const auto header = header_of(tensors, metadata, path);
  if (!header) return fail(header.error());
  auto state = std::make_unique<State>();
  state->path = path;
  state->part = path + ".part";
  state->tensors = tensors;
  state->next = state->tensors.begin();
  state->file = ::open(state->part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (state->file < 0) return fail(detail::io_error("made", state->part));
  if (auto ok = detail::write_bytes(state->file, header->data(), static_cast<std::int64_t>(header->size()), state->part); !ok) return fail(ok.error());
  return SafetensorsWriter(std::move(state));
}

Result<void> SafetensorsWriter::write(const std::string& name, const at::Tensor& tensor) {
  State& s = *state_;
  if (s.next == s.tensors.end() || s.next->first != name) {
    return fail(Errc::kMismatch, text(s.path, ": expected tensor '", s.next == s.tensors.end() ? "(none)" : s.next->first, "' next, got '", name, "'"));
  }
  const Declared& declared = s.next->second;
  if (tensor.scalar_type() != declared.dtype || tensor.sizes() != at::IntArrayRef(declared.shape)) {
    return fail(Errc::kMismatch, text(s.path, ", tensor '", name, "': declared as ", c10::toString(declared.dtype), " ", at::IntArrayRef(declared.shape), ", got ",
                                      c10::toString(tensor.scalar_type()), " ", tensor.sizes()));
  }
  const at::Tensor packed = tensor.detach().cpu().contiguous();
  if (auto ok = detail::write_bytes(s.file, packed.const_data_ptr(), static_cast<std::int64_t>(packed.nbytes()), s.part); !ok) return ok;
  ++s.next;
  return {};
}

Result<void> SafetensorsWriter::finish() {
  State& s = *state_;
  if (s.next != s.tensors.end()) return fail(Errc::kMismatch, text(s.path, ": tensor '", s.next->first, "' and those after it were not written"));
  if (auto ok = detail::put_in_place(s.file, s.part, s.path); !ok) return ok;
  ::close(s.file);
  s.file = -1;
  return {};
}

Result<void> write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors, const std::map<std::string, std::string>& metadata) {
  std::map<std::string, SafetensorsWriter::Declared> declared;
  for (const auto& [name, tensor] : tensors) declared.emplace(name, SafetensorsWriter::Declared{tensor.scalar_type(), tensor.sizes().vec()});
  auto writer = SafetensorsWriter::create(path, declared, metadata);
  if (!writer) return fail(writer.error());
  for (const auto& [name, tensor] : tensors) {
    if (auto ok = writer->write(name, tensor); !ok) return ok;
  }
  return writer->finish();
}

}  // namespace troupe
