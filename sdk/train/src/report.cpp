#include <troupe/train/report.hpp>

#include <algorithm>

#include <troupe/base/text.hpp>
#include <troupe/train/files.hpp>
#include "markup.hpp"

namespace troupe {
namespace {

using detail::bytes_text;
using detail::count_text;
using detail::escaped;

constexpr const char* kStyle = R"(
:root { color-scheme: light; }
body { margin: 0; background: #f6f7f9; color: #111827; font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0; }
h2 { font-size: 17px; margin: 36px 0 10px; }
h3 { font-size: 15px; margin: 0 0 8px; }
h3 .quiet { font-weight: 400; margin-left: 6px; }
.quiet { color: #6b7280; font-size: 13px; }
.card { background: white; border: 1px solid #e5e7eb; border-radius: 8px; padding: 16px; margin: 0 0 12px; }
.card > svg { display: block; width: 100%; height: auto; }
.figures { display: flex; flex-wrap: wrap; gap: 12px; margin: 20px 0 0; }
.figures .card { flex: 1 1 130px; margin: 0; padding: 12px 16px; }
.figures b { display: block; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: #6b7280; font-size: 13px; }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid #f0f1f3; vertical-align: top; }
tr:last-child td { border-bottom: none; }
td.number, th.number { text-align: right; white-space: nowrap; }
.layout table { table-layout: fixed; }
.layout th:nth-child(1) { width: 12%; }
.layout th:nth-child(2) { width: 26%; }
.layout th:nth-child(3) { width: 14%; }
.layout td:nth-child(3), .layout th:nth-child(3) { padding-right: 28px; }
td.text { overflow-wrap: anywhere; }
.bar { background: #eef2f6; border-radius: 3px; height: 12px; margin-top: 5px; }
.bar > i { display: block; background: #3182bd; border-radius: 3px; height: 12px; min-width: 2px; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 12px; }
.pictures .card { margin: 0; padding: 12px; overflow-wrap: anywhere; font-size: 14px; line-height: 1.35; }
.pictures img { display: block; width: 100%; aspect-ratio: 1; object-fit: contain; background: white; margin-bottom: 8px; }
.pictures p { margin: 0 0 6px; }
.pictures .quiet { display: block; font-size: 12px; }
)";

std::string cell(const std::string& content, const char* kind) { return text("<td class=\"", kind, "\">", content, "</td>"); }

std::string figures(const std::vector<ReportText>& all) {
  if (all.empty()) return {};
  std::string out = "<div class=\"figures\">\n";
  for (const auto& one : all) out += text("<div class=\"card\"><span class=\"quiet\">", escaped(one.name), "</span><b>", escaped(one.text), "</b></div>\n");
  return out + "</div>\n";
}

std::string curves(const std::vector<ReportCurve>& all) {
  std::string out;
  for (const auto& one : all) out += text("<h2>", escaped(one.title), "</h2>\n<div class=\"card\">\n", curve_svg(one), "</div>\n");
  return out;
}

std::string rank_row(const ReportRank& rank, std::size_t index, std::int64_t most) {
  std::string peak = "not tracked";
  if (rank.peak_bytes > 0) {
    peak = text(bytes_text(rank.peak_bytes), rank.budget_bytes > 0 ? text(" of ", bytes_text(rank.budget_bytes)) : "", "<div class=\"bar\"><i style=\"width:",
                detail::number_text(100.0 * static_cast<double>(rank.peak_bytes) / static_cast<double>(most)), "%\"></i></div>");
  }
  return text("<tr>", cell(text("rank ", index), ""), cell(escaped(rank.device), ""), cell(count_text(rank.parameters), "number"), cell(peak, ""), "</tr>\n");
}

/// One table a stage; the bars of all stages have one scale.
std::string layout(const std::vector<ReportStage>& stages) {
  if (stages.empty()) return {};
  std::int64_t most = 1;
  for (const auto& stage : stages) {
    for (const auto& rank : stage.ranks) most = std::max(most, rank.peak_bytes);
  }
  std::string out = text("<h2>Layout</h2>\n<p class=\"quiet\">Peak: most tensor bytes at one time; the longest bar is ", bytes_text(most), ".</p>\n");
  for (const auto& stage : stages) {
    const char* ranks = stage.ranks.size() == 1 ? " rank" : " ranks";
    out += text("<div class=\"card layout\">\n<h3>", escaped(stage.name), " <span class=\"quiet\">", stage.ranks.size(), ranks, stage.mesh.empty() ? "" : ", mesh ", escaped(stage.mesh),
                "</span></h3>\n<table>\n<tr><th></th><th>device</th><th class=\"number\">parameters</th><th>peak</th></tr>\n");
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) out += rank_row(stage.ranks[i], i, most);
    out += "</table>\n</div>\n";
  }
  return out;
}

std::string edges(const std::vector<ReportEdge>& all) {
  if (all.empty()) return {};
  std::string out = "<h2>Edges</h2>\n<div class=\"card\">\n<table>\n<tr><th>bytes in one step</th><th class=\"number\">handed over</th><th class=\"number\">copied</th></tr>\n";
  for (const auto& one : all) {
    out += text("<tr>", cell(escaped(one.name), "text"), cell(bytes_text(one.referenced), "number"), cell(bytes_text(one.copied), "number"), "</tr>\n");
  }
  return out + "</table>\n</div>\n";
}

/// By the first bytes of the file.
const char* media_type(std::string_view file) {
  if (file.starts_with("\xff\xd8")) return "image/jpeg";
  if (file.starts_with("GIF8")) return "image/gif";
  if (file.starts_with("RIFF")) return "image/webp";
  return "image/png";
}

std::string pictures(const std::vector<ReportPictures>& groups) {
  std::string out;
  for (const auto& group : groups) {
    if (group.pictures.empty()) continue;
    out += text("<h2>", escaped(group.title), "</h2>\n<div class=\"pictures\">\n");
    for (const auto& one : group.pictures) {
      out += text("<div class=\"card\"><img alt=\"\" src=\"data:", media_type(one.file), ";base64,", detail::base64(one.file), "\">");
      for (const auto& line : one.texts) out += text("<p><span class=\"quiet\">", escaped(line.name), "</span>", escaped(line.text), "</p>");
      out += "</div>\n";
    }
    out += "</div>\n";
  }
  return out;
}

std::string settings(const std::vector<ReportText>& all) {
  if (all.empty()) return {};
  std::string out = "<h2>Settings</h2>\n<div class=\"card\">\n<table>\n";
  for (const auto& one : all) out += text("<tr>", cell(escaped(one.name), "quiet"), cell(escaped(one.text), "text"), "</tr>\n");
  return out + "</table>\n</div>\n";
}

std::string notes(const std::vector<std::string>& all) {
  if (all.empty()) return {};
  std::string out = "<h2>Notes</h2>\n";
  for (const auto& one : all) out += text("<p>", escaped(one), "</p>\n");
  return out;
}

}  // namespace

std::string report_html(const ReportPage& page) {
  std::string out = text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
                         escaped(page.title), "</title>\n<style>", kStyle, "</style>\n</head>\n<body>\n<main>\n<h1>", escaped(page.title), "</h1>\n");
  if (!page.subtitle.empty()) out += text("<p class=\"quiet\">", escaped(page.subtitle), "</p>\n");
  out += figures(page.figures) + curves(page.curves) + pictures(page.pictures) + layout(page.stages) + edges(page.edges) + settings(page.settings) + notes(page.notes);
  return out + "</main>\n</body>\n</html>\n";
}

Result<void> write_report_html(const std::string& path, const ReportPage& page) { return write_file(path, report_html(page)); }

}  // namespace troupe
