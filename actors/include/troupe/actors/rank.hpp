#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include <troupe/base/clock.hpp>
#include <troupe/layout/mesh.hpp>
#include <troupe/layout/resources.hpp>
#include <troupe/transport/group.hpp>

namespace troupe {

class Parameters;  // troupe/parallel/parameters.hpp

namespace detail {
class RankState;
}

/// One member of a pool, as its own code sees it: who it is and whom it can talk to. Handed to a
/// constructor that takes `Rank&` first; valid as long as the object lives.
/// Thread: the rank's own, but for stop_token().
class Rank {
 public:
  explicit Rank(detail::RankState& state) : state_(&state) {}

  [[nodiscard]] int index() const noexcept;       ///< 0 .. world_size() - 1, row-major in the mesh.
  [[nodiscard]] int world_size() const noexcept;
  [[nodiscard]] const Mesh& mesh() const noexcept;
  [[nodiscard]] const std::string& pool() const noexcept;
  [[nodiscard]] const RankPlacement& placement() const noexcept;
  [[nodiscard]] Clock& clock() const noexcept;
  [[nodiscard]] const transport::Context& transport() const noexcept;

  /// The ranks that differ from this one on `name` only. An axis the mesh lacks has one member.
  /// The reference stays valid after a failure: the next call of the pool runs on a new generation.
  [[nodiscard]] transport::Group& axis(std::string_view name) const;

  /// The ranks that differ on the named axes only; {} names all axes of the mesh.
  [[nodiscard]] transport::Group& group(std::span<const std::string> axes) const;
  [[nodiscard]] transport::Group& world() const { return group({}); }

  /// True once the pool closes: long verbs should look.
  [[nodiscard]] std::stop_token stop_token() const noexcept;

  /// One object of type T per rank, made on first use: how the layers above keep state with a rank.
  template <class T>
  [[nodiscard]] T& attachment() const {
    const std::shared_ptr<void> object = attachment(typeid(T), [] { return std::shared_ptr<void>(std::make_shared<T>()); });
    return *static_cast<T*>(object.get());
  }

  /// Named parameters below `prefix`; needs troupe/parallel/parameters.hpp.
  template <class P = Parameters>
  [[nodiscard]] P parameters(std::string_view prefix) {
    return P{*this, prefix};
  }

 private:
  [[nodiscard]] std::shared_ptr<void> attachment(std::type_index type,
                                                 const std::function<std::shared_ptr<void>()>& make) const;
  detail::RankState* state_;
};

/// What surrounds the code of a rank on its thread: LibTorch's thread-local modes, a memory budget.
/// The actors know no LibTorch; troupe/torch supplies one. enter() runs on the rank's thread before the
/// constructor, the result is destroyed there after the object.
class RankEnvironment {
 public:
  class Scope {
   public:
    virtual ~Scope() = default;
    [[nodiscard]] virtual std::int64_t peak_bytes() const { return 0; }  ///< Any thread.
    [[nodiscard]] virtual std::int64_t live_bytes() const { return 0; }  ///< Any thread.
  };
  virtual ~RankEnvironment() = default;
  [[nodiscard]] virtual std::unique_ptr<Scope> enter(const Rank& rank) = 0;
};

}  // namespace troupe
