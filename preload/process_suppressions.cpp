#include "preload/process_suppressions.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "preload/given_file.h"

namespace devsan {
namespace {

struct Loaded {
  std::string path;
  std::vector<trace::Suppression> entries;
};

alignas(Loaded) constinit unsigned char g_memory[sizeof(Loaded)] = {};
constinit const Loaded* g_loaded = nullptr;

}  // namespace

std::vector<std::string> load_suppressions(const std::string& path) noexcept {
  if (path.empty()) return {};
  std::vector<std::string> complaints;
  std::string text;
  if (!read_given_file(path, trace::kMaxSuppressionBytes + 1, &text)) {
    char reason[128];
    complaints.push_back(path + ": " + strerror_r(errno, reason, sizeof reason) + "; nothing is suppressed");
    return complaints;
  }
  trace::ParsedSuppressions parsed = trace::parse_suppressions(text);
  for (const trace::SuppressionComplaint& complaint : parsed.complaints) {
    const std::string place = complaint.line > 0 ? ":" + std::to_string(complaint.line) + ": " : " ";
    complaints.push_back(path + place + complaint.sentence);
  }
  g_loaded = new (g_memory) Loaded{path, std::move(parsed.entries)};
  return complaints;
}

void record_suppressions(trace::Recorder* recorder) noexcept {
  if (g_loaded == nullptr) return;
  for (const trace::Suppression& entry : g_loaded->entries) {
    recorder->add_suppression(g_loaded->path, entry.line, entry.text, entry.reason);
  }
}

bool is_suppressed(const trace::FindingPlace& place) noexcept {
  return g_loaded != nullptr && std::any_of(g_loaded->entries.begin(), g_loaded->entries.end(),
                                            [&](const trace::Suppression& entry) { return entry.matches(place); });
}

}  // namespace devsan
