#pragma once

namespace troupe {

/// LibTorch's thread-local modes for a rank, while the object lives: gradients on, backward on the calling
/// thread (two pools on one device would deadlock on the device's engine thread otherwise), and
/// `threads` intra-op threads for this thread only: new threads of the host keep theirs (EMB).
class RankThreadScope {
 public:
  explicit RankThreadScope(int threads);
  ~RankThreadScope();
  RankThreadScope(const RankThreadScope&) = delete;
  RankThreadScope& operator=(const RankThreadScope&) = delete;

 private:
  bool multithreading_;
  bool gradients_;
  int threads_;
};

}  // namespace troupe
