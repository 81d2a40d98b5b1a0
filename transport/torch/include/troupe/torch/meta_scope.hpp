#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

namespace troupe {

/// The same dtype, shape and strides without data (device meta); undefined stays undefined.
[[nodiscard]] at::Tensor without_data(const at::Tensor& tensor);

/// While it lives, operators of this thread can run on tensors without data as they would on a device (NUM-6):
/// host tensors that meet such tensors count as without data; operators for which LibTorch has no meta kernel get their
/// shapes from Troupe, small ones from a run on zeros; random draws leave the generators alone.
/// Operators then throw Exception: kInvalidArgument, naming the operator, where the host reads values (item(), copies to
/// the host, shapes that depend on values); kUnavailable where no shape can be told.
/// The first object of a process registers a fallback for LibTorch's dispatch key Fake, which is kept for libraries outside of
/// it. Threads without a scope never reach it, and aten's own kernels stay as they are (EMB).
class MetaScope {
 public:
  MetaScope();
  ~MetaScope();
  MetaScope(const MetaScope&) = delete;
  MetaScope& operator=(const MetaScope&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

}  // namespace troupe
