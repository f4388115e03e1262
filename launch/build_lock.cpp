#include "launch/build_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "launch/file_text.h"
#include "launch/messages.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kBeat{20};
constexpr std::chrono::milliseconds kLook{250};
constexpr unsigned kLooksForOneAtTheClock = 80;
// NFS clients may show a time that is a minute old.
constexpr time_t kAbandonedAfter = 300;

// What the lock says; empty where there is none, or where its owner is about to sign it.
std::string signature_of(const fs::path& path) {
  return text_of_file(path);
}

bool sign(int file, const std::string& text) {
  return write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The time by the clock of the file system, which may be another machine's.
std::optional<time_t> time_there(const fs::path& directory) {
  std::string name = (directory / (".clock-" + Owner::current().random + "-XXXXXX")).string();
  const int file = mkstemp(name.data());
  if (file < 0) return std::nullopt;
  struct stat status {};
  const bool known = fstat(file, &status) == 0;
  close(file);
  unlink(name.c_str());
  return known ? std::optional(status.st_mtime) : std::nullopt;
}

}  // namespace

bool is_abandoned(const fs::path& path, const std::optional<Owner>& owner) {
  const Life life = owner ? life_of(*owner) : Life::elsewhere;
  if (life != Life::elsewhere) return life == Life::dead;
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return false;
  const std::optional<time_t> now = time_there(path.parent_path());
  return now && *now - status.st_mtime > kAbandonedAfter;
}

Heartbeat::Heartbeat(fs::path file) : file_(std::move(file)) {
  // Signals are for the thread that runs the compilers.
  sigset_t all;
  sigset_t former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Heartbeat::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kBeat, [this] { return ended_; })) {
    utimensat(AT_FDCWD, file_.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
}

BuildLock::BuildLock(const HooksLocation& location, const std::function<void()>& must_wait)
    : path_(fs::path(location.root) / ("." + std::string(location.key) + ".lock")), owner_(Owner::current()) {
  bool waiting = false;
  for (unsigned look = 0; !take(); ++look) {
    const std::string seen = signature_of(path_);
    const std::optional<Owner> owner = Owner::parse(seen);
    // To ask for another machine's time takes a file each time.
    const bool can_judge = (owner && life_of(*owner) != Life::elsewhere) || look % kLooksForOneAtTheClock == 0;
    if (can_judge && is_abandoned(path_, owner) && remove_abandoned(seen)) continue;
    if (!waiting) must_wait();
    waiting = true;
    std::this_thread::sleep_for(kLook);
  }
  heartbeat_ = std::make_unique<Heartbeat>(path_);
}

// Whoever took it for abandoned may hold it by now.
BuildLock::~BuildLock() {
  heartbeat_.reset();
  if (signature_of(path_) == owner_.text()) unlink(path_.c_str());
}

bool BuildLock::take() {
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0 && errno == EEXIST) return false;
  const bool signed_ = file >= 0 && sign(file, owner_.text());
  const int error = errno;
  if (file >= 0) close(file);
  if (signed_) return true;
  if (file >= 0) unlink(path_.c_str());
  throw Failure("cannot lock " + path_.string() + ": " + std::strerror(error));
}

// Of several that find it abandoned one gets the file by this rename. What one gets may be the lock that another has
// taken meanwhile: that goes back. Where that fails a third one has taken it, and its owners build beside each other.
bool BuildLock::remove_abandoned(const std::string& seen) {
  const std::string aside = path_.string() + "." + owner_.text();
  if (rename(path_.c_str(), aside.c_str()) != 0) return errno == ENOENT;
  const bool put_back = signature_of(aside) != seen && link(aside.c_str(), path_.c_str()) == 0;
  unlink(aside.c_str());
  return !put_back;
}

}  // namespace devsan::launch
