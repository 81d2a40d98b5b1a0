#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "file_bytes.hpp"
#include "records.hpp"

namespace qwen_vl {

/// A file in an archive.
struct TarMember {
  std::string name;          ///< With its folders.
  std::int64_t header = 0;   ///< Where its header begins, in bytes; messages say it.
  std::int64_t offset = 0;   ///< Where its bytes begin.
  std::int64_t size = 0;
};

/// Walks the plain files of a tar in order: ustar, GNU long names, pax paths and sizes. Folders are passed over.
/// Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; GNU tar manual, "Basic Tar Format".
class TarReader {
 public:
  /// Fails with: kIo; kBadData for a compressed archive.
  [[nodiscard]] static troupe::Result<TarReader> open(const std::string& path);
  /// The next file, or nothing after the last.
  /// Fails with: kBadData naming the member and the offset for a broken header, a link or device, and an archive that ends early.
  [[nodiscard]] troupe::Result<std::optional<TarMember>> next();
  /// The bytes of a member. Thread: any, also several at once.
  /// Fails with: kIo.
  [[nodiscard]] troupe::Result<std::string> read(const TarMember& member) const;
  [[nodiscard]] const std::string& path() const { return file_.path(); }

 private:
  struct Pending {   ///< What extension headers say of the next member.
    std::optional<std::string> name;
    std::optional<std::int64_t> size;
  };
  explicit TarReader(FileBytes file) : file_(std::move(file)) {}
  troupe::Result<std::string> extension(const TarMember& member) const;
  troupe::Result<void> extend(char type, const TarMember& member, Pending& pending) const;
  template <class... Parts>
  tl::unexpected<troupe::Error> wrong(std::int64_t offset, const Parts&... parts) const;

  FileBytes file_;
  std::int64_t at_ = 0;      ///< Of the next header.
  std::string last_;         ///< Name of the member before, for messages.
};

/// Files that belong together: those of one key, which is the path up to the first dot of the file's own name.
struct TarSample {
  std::string key;
  struct File {
    std::string extension;   ///< After that dot, in lower case: "jpg", "0.png", "json".
    TarMember member;
  };
  std::vector<File> files;   ///< In the archive's order.
};

/// Groups members that follow each other. Names without a dot, hidden files and names of the form __x__ belong to no sample.
/// Fails with: as TarReader; kBadData for a file that occurs twice in a sample, and an archive without samples.
/// Source: WebDataset's file layout (github.com/webdataset/webdataset, README).
[[nodiscard]] troupe::Result<std::vector<TarSample>> index_samples(TarReader& tar);

/// An archive of records: a .json file with a conversation, or a caption as .txt or as "caption" in the .json; and pictures (.jpg, .png, ..., also
/// .0.jpg, .1.jpg, in natural order), which win over names of pictures in the .json. Only the index is in memory.
class TarRecords final : public RecordSource {
 public:
  /// `options.picture_root` is of samples without pictures of their own. Fails with: as index_samples().
  [[nodiscard]] static troupe::Result<TarRecords> open(const std::string& path, const RecordOptions& options = {});
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  /// Fails with: kBadData naming archive and key for a sample without text; as parse_record().
  [[nodiscard]] troupe::Result<Record> read(std::int64_t number) const override;

 private:
  TarRecords(TarReader tar, std::vector<TarSample> samples, RecordOptions options)
      : tar_(std::move(tar)), samples_(std::move(samples)), options_(std::move(options)) {}
  troupe::Result<std::vector<PictureSource>> pictures_of(const TarSample& sample, const std::string& where) const;
  troupe::Result<Record> record_from(const std::string& json, std::vector<PictureSource> pictures, const std::string& where) const;
  TarReader tar_;
  std::vector<TarSample> samples_;
  RecordOptions options_;
};

}  // namespace qwen_vl
