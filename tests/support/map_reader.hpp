#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <troupe/base/text.hpp>
#include <troupe/parallel/tensor_reader.hpp>

namespace troupe::test {

/// Stored tensors that are not in a file: what was read of each, and a fault on demand.
class MapReader final : public TensorReader {
 public:
  explicit MapReader(std::map<std::string, at::Tensor> tensors) : tensors_(std::move(tensors)) {}

  std::string broken;   ///< Reading this one fails with kIo; it looks well before.

  [[nodiscard]] Result<void> expect(const std::string& name, std::span<const std::int64_t> shape) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return fail(Errc::kMismatch, text("there is no tensor '", name, "'"));
    if (found->second.sizes().equals(at::IntArrayRef(shape.data(), shape.size()))) return {};
    return fail(Errc::kMismatch, text("tensor '", name, "': expected ", at::IntArrayRef(shape.data(), shape.size()), ", got ", found->second.sizes()));
  }

  [[nodiscard]] Result<at::Tensor> read(const std::string& name, const TensorPart& part) const override {
    if (name == broken) return fail(Errc::kIo, text("tensor '", name, "': the disk is gone"));
    const at::Tensor& whole = tensors_.at(name);
    std::vector<at::Tensor> parts;
    if (part.dim < 0) parts.push_back(whole);
    for (const Share& range : part.ranges) parts.push_back(whole.narrow(part.dim, range.begin, range.size));
    at::Tensor out = part.dim < 0 ? whole.clone() : at::cat(parts, part.dim);
    const std::lock_guard lock(mutex_);
    elements_[name].push_back(out.numel());
    return out;
  }

  /// Elements of each read of a tensor.
  [[nodiscard]] std::vector<std::int64_t> reads_of(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = elements_.find(name);
    return found == elements_.end() ? std::vector<std::int64_t>{} : found->second;
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::vector<std::int64_t>> elements_;
};

}  // namespace troupe::test
