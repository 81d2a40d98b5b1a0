#include <troupe/actors/wire_table.hpp>

#include <map>
#include <mutex>

#include <troupe/base/text.hpp>

namespace troupe::detail {
namespace {

template <class Entry>
class Table {
 public:
  bool add(std::uint64_t id, const Entry& entry) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = entries_.emplace(id, entry);
    if (!is_new && *at->second.type != *entry.type) at->second.type = nullptr;   // nobody can say which is meant
    return is_new;
  }
  Result<Entry> find(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return fail(Errc::kMismatch, text("this program has nothing of id ", id, ": is it another than its host?"));
    if (found->second.type != nullptr) return found->second;
    return fail(Errc::kUnavailable, text("two classes of this program are spelled alike where ", found->second.name, " is from; one in a worker process needs a name of its own"));
  }
  std::uint64_t hash() {
    const std::lock_guard lock(mutex_);
    std::uint64_t out = entries_.size();
    for (const auto& [id, entry] : entries_) out = mix(out, id);
    return out;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
};

// of the program, not of a runtime: what it can be asked is settled when it is linked
Table<WireVerb>& verbs() {
  static Table<WireVerb> table;
  return table;
}
Table<WireClass>& classes() {
  static Table<WireClass> table;
  return table;
}

}  // namespace

bool add_wire_verb(std::uint64_t id, const WireVerb& verb) { return verbs().add(id, verb); }
bool add_wire_class(std::uint64_t id, const WireClass& made) { return classes().add(id, made); }
Result<WireVerb> find_wire_verb(std::uint64_t id) { return verbs().find(id); }
Result<WireClass> find_wire_class(std::uint64_t id) { return classes().find(id); }
std::uint64_t wire_table_hash() { return mix(verbs().hash(), classes().hash()); }

}  // namespace troupe::detail
