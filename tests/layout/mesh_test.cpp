#include <gtest/gtest.h>

#include <troupe/layout/mesh.hpp>

namespace troupe {
namespace {

TEST(Meshes, TheLastAxisIsFastest) {
  const Mesh mesh{{"dp", 2}, {"sp", 3}};
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.coordinate(4, "dp"), 1);
  EXPECT_EQ(mesh.coordinate(4, "sp"), 1);
  EXPECT_EQ(mesh.coordinate(4, "tp"), 0) << "an axis that it lacks";
  EXPECT_EQ(mesh.size("tp"), 1);
  EXPECT_EQ(mesh.peers(4, "sp"), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(mesh.peers(4, "dp"), (std::vector<int>{1, 4}));
  EXPECT_EQ(mesh.peers(4, "tp"), (std::vector<int>{4}));
  const std::vector<std::string> both{"sp", "dp"};
  EXPECT_EQ(mesh.index_in(4, both), 1 * 2 + 1);
}

TEST(Meshes, ReadTheirGrammar) {
  EXPECT_EQ(or_throw(Mesh::parse("dp=2,sp=4")), (Mesh{{"dp", 2}, {"sp", 4}}));
  EXPECT_EQ(or_throw(Mesh::parse("")).size(), 1);
  EXPECT_EQ(or_throw(Mesh::parse("dp=2,sp=4")).to_string(), "dp=2,sp=4");
  for (const char* wrong : {"dp", "dp=", "=2", "dp=x", "dp=0", "dp=-1", "dp=2,dp=2", "dp=2,,sp=2", "dp=2,", ",dp=2", ",", "dp=2x", "dp==2", "dp=+2", "dp=99999999999", "a=2000,b=2000"}) {
    const auto parsed = Mesh::parse(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, Errc::kInvalidArgument) << wrong;
  }
}

TEST(Meshes, SayWhatIsWrong) {
  EXPECT_EQ(Mesh::parse("dp=2,").error().message, "mesh 'dp=2,': expected axis=size[,axis=size...] such as dp=2,sp=4, got ''");
  EXPECT_EQ(Mesh::parse("dp=99999999999").error().message, "mesh 'dp=99999999999': the size of an axis must fit 32 bits, got 'dp=99999999999'");
  EXPECT_EQ((Mesh{{"dp", 2}, {"dp", 3}}).check().error().message, "mesh dp=2,dp=3: axis dp is named twice");
  EXPECT_EQ((Mesh{{"dp", 1 << 30}, {"sp", 1 << 30}, {"tp", 1 << 30}}).check().error().code, Errc::kInvalidArgument);
}

// each rank is in one group of peers per axis, at the place of its coordinate
TEST(Meshes, PeersPartitionTheRanks) {
  const Mesh mesh{{"dp", 2}, {"sp", 3}, {"tp", 2}};
  for (const char* axis : {"dp", "sp", "tp", "absent"}) {
    for (int rank = 0; rank < mesh.size(); ++rank) {
      const auto peers = mesh.peers(rank, axis);
      ASSERT_EQ(static_cast<int>(peers.size()), mesh.size(axis));
      EXPECT_EQ(peers[static_cast<std::size_t>(mesh.coordinate(rank, axis))], rank);
      for (const int peer : peers) EXPECT_EQ(mesh.peers(peer, axis), peers);
    }
  }
}

// case 8: uneven shares, and parts left without any
TEST(Shares, DifferByAtMostOneAndCoverAll) {
  for (const auto& [total, parts] : {std::pair<std::int64_t, int>{7, 4}, {20, 8}, {1, 4}, {0, 3}, {16, 4}}) {
    std::int64_t next = 0;
    for (int part = 0; part < parts; ++part) {
      const Share share = share_of(total, parts, part);
      EXPECT_EQ(share.begin, next);
      EXPECT_TRUE(share.size == total / parts || share.size == total / parts + 1);
      next = share.end();
    }
    EXPECT_EQ(next, total);
  }
}

}  // namespace
}  // namespace troupe
