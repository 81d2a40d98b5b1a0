#include <troupe/torch/rank_scope.hpp>

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <omp.h>

namespace troupe {

RankThreadScope::RankThreadScope(int threads)
    : multithreading_(c10::AutogradState::get_tls_state().get_multithreading_enabled()), gradients_(c10::GradMode::is_enabled()) {
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  c10::GradMode::set_enabled(true);
  // at::set_num_threads() would change what new threads of the host get; the first read initialises LibTorch's
  // own state, after which OpenMP's per-thread setting counts
  threads_ = at::get_num_threads();
  omp_set_num_threads(threads);
}

RankThreadScope::~RankThreadScope() {
  omp_set_num_threads(threads_);
  c10::GradMode::set_enabled(gradients_);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreading_);
}

}  // namespace troupe
