#include <utility>

#include <troupe/base/text.hpp>

#include "group/member.hpp"

namespace troupe::transport {

Result<std::vector<std::unique_ptr<Group>>> open_inproc_group(const Context& context, const std::string& name, int size) {
  if (size < 1) return fail(Errc::kInvalidArgument, text("group ", name, ": size ", size, "; a group has at least one member"));
  const auto members = static_cast<std::size_t>(size);
  std::vector<GroupEnds> ends(members);
  for (std::size_t rank = 0; rank < members; ++rank) {
    ends[rank].name = name;
    ends[rank].rank = static_cast<int>(rank);
    ends[rank].size = size;
    ends[rank].to.resize(members);
    ends[rank].from.resize(members);
  }
  for (std::size_t from = 0; from < members; ++from) {
    for (std::size_t to = 0; to < members; ++to) {
      if (from == to) continue;
      auto pair = open_inproc(context, {.name = text(name, " ", from, "->", to)});
      if (!pair) return fail(pair.error());
      ends[from].to[to] = std::move(pair->sender);
      ends[to].from[from] = std::move(pair->receiver);
    }
  }
  std::vector<std::unique_ptr<Group>> groups;
  groups.reserve(members);
  for (GroupEnds& end : ends) groups.push_back(make_group(context, std::move(end)));
  return groups;
}

}  // namespace troupe::transport
