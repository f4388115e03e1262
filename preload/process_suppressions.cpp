#include "preload/process_suppressions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace devsan {
namespace {

struct Loaded {
  std::string path;
  std::vector<trace::Suppression> entries;
};

alignas(Loaded) constinit unsigned char g_memory[sizeof(Loaded)] = {};
constinit const Loaded* g_loaded = nullptr;

// Not more than one byte above what a file may have. A pipe would be waited for, and could be read only once.
bool read_file(const std::string& path, std::string* text) noexcept {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  struct stat status {};
  int error = fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) ? ESPIPE : 0;
  text->resize(trace::kMaxSuppressionBytes + 1);
  std::size_t filled = 0;
  while (error == 0 && filled < text->size()) {
    const ssize_t got = read(file, text->data() + filled, text->size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  close(file);
  text->resize(filled);
  errno = error;
  return error == 0;
}

}  // namespace

std::vector<std::string> load_suppressions(const std::string& path) noexcept {
  if (path.empty()) return {};
  std::vector<std::string> complaints;
  std::string text;
  if (!read_file(path, &text)) {
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
