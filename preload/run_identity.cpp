#include "preload/run_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "trace/file_layout.h"
#include "trace/fixed_text.h"
#include "trace/hash_index.h"
#include "trace/process_info.h"

namespace devsan {
namespace {

using Words = FixedText<1024>;

// Appends the variables' values, if all of them are set.
bool append_values(Words* words, std::initializer_list<const char*> names) noexcept {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value == nullptr || value[0] == '\0') return false;
    words->append(name).append("=").append(value).append(";");
  }
  return true;
}

// What a launcher says alike to all processes of one run. Without a name that the user has chosen, torchrun's is
// "none".
std::uint64_t rendezvous() noexcept {
  constexpr const char* kRunId = "TORCHELASTIC_RUN_ID";
  Words words;
  const char* run_id = std::getenv(kRunId);
  const bool named = run_id != nullptr && !same_text(run_id, "none");
  const bool known =
      (named && append_values(&words, {kRunId})) || append_values(&words, {"MASTER_ADDR", "MASTER_PORT"}) ||
      append_values(&words, {"SLURM_JOB_ID", "SLURM_STEP_ID"}) || append_values(&words, {"PMIX_NAMESPACE"});
  return known ? std::max<std::uint64_t>(trace::hash_bytes(words.c_str(), words.view().size()), 1) : 0;
}

using Name = FixedText<sizeof(trace::RunIdentity::name)>;

Name run_of_trace(const char* path) noexcept {
  char text[sizeof(trace::RunIdentity::name)] = {};
  const int file = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
  if (file < 0) return {};
  const ssize_t bytes = pread(file, text, sizeof text - 1, offsetof(trace::FileHeader, run));
  close(file);
  return bytes > 0 ? Name(text) : Name();
}

}  // namespace

trace::RunIdentity run_identity(const char* given, const Ancestry& ancestry) noexcept {
  Name name(given);
  if (name.empty()) name = run_of_trace(ancestry.trace.c_str());
  if (name.empty()) {
    const auto root = static_cast<std::uint32_t>(ancestry.root > 0 ? ancestry.root : getpid());
    char host[64] = {};
    gethostname(host, sizeof host - 1);
    name.append_number(root).append("-").append_number(trace::start_ticks_of(root)).append("-").append(host);
  }
  trace::RunIdentity identity;
  std::memcpy(identity.name.data(), name.c_str(), name.view().size());
  identity.rendezvous = rendezvous();
  return identity;
}

}  // namespace devsan
