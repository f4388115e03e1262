#include "launch/exchange_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "launch/messages.h"
#include "launch/sha256.h"
#include "preload/hooks_cache.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = "devsan-hooks-export";
constexpr std::string_view kFirstLine = "devsan-hooks-export 1";
constexpr std::size_t kTarBlock = 512;

// The header of a member (POSIX.1-1988, "ustar").
struct TarHeader {
  char name[100];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[6];
  char version[2];
  char rest[247];
};
static_assert(sizeof(TarHeader) == kTarBlock);

// The sum of all bytes, those of itself taken for spaces.
unsigned checksum_of(TarHeader header) {
  std::memset(header.checksum, ' ', sizeof header.checksum);
  unsigned sum = 0;
  for (const unsigned char byte : std::string_view(reinterpret_cast<const char*>(&header), sizeof header)) sum += byte;
  return sum;
}

std::size_t padding_of(std::size_t size) {
  return (kTarBlock - size % kTarBlock) % kTarBlock;
}

std::string tar_member(std::string_view name, std::string_view content) {
  TarHeader header{};
  name.copy(header.name, sizeof header.name - 1);
  std::snprintf(header.mode, sizeof header.mode, "%07o", 0644U);
  std::snprintf(header.uid, sizeof header.uid, "%07o", 0U);
  std::snprintf(header.gid, sizeof header.gid, "%07o", 0U);
  std::snprintf(header.size, sizeof header.size, "%011zo", content.size());
  std::snprintf(header.mtime, sizeof header.mtime, "%011o", 0U);
  header.type = '0';
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memcpy(header.version, "00", sizeof header.version);
  std::snprintf(header.checksum, sizeof header.checksum, "%06o", checksum_of(header));
  header.checksum[7] = ' ';
  std::string member(reinterpret_cast<const char*>(&header), sizeof header);
  member += content;
  return member.append(padding_of(content.size()), '\0');
}

std::string content_of(const fs::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) throw Failure("cannot read " + path.string() + ": " + std::strerror(errno));
  return content.str();
}

void write_content(const fs::path& path, std::string_view content) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw Failure("cannot write " + path.string() + ": " + std::strerror(errno != 0 ? errno : EIO));
}

// Takes the members apart, or as many as are whole.
std::map<std::string, std::string> read_tar(std::string_view bytes) {
  std::map<std::string, std::string> members;
  while (bytes.size() >= kTarBlock) {
    TarHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (std::memcmp(header.magic, "ustar", sizeof header.magic) != 0) break;
    if (std::strtoul(header.checksum, nullptr, 8) != checksum_of(header)) break;
    const std::size_t size = std::strtoull(std::string(header.size, sizeof header.size).c_str(), nullptr, 8);
    bytes.remove_prefix(kTarBlock);
    if (size > bytes.size()) break;
    members[std::string(header.name, strnlen(header.name, sizeof header.name))] = bytes.substr(0, size);
    bytes.remove_prefix(std::min(size + padding_of(size), bytes.size()));
  }
  return members;
}

bool is_library(const std::string& name) {
  return name == kHooksLibrary || name == kSimLibrary;
}

}  // namespace

void write_exchange_file(const fs::path& file, const fs::path& directory, const std::string& key,
                         const std::string& torch) {
  std::string manifest = std::string(kFirstLine) + "\nkey " + key + "\ntorch " + torch + "\n";
  std::string members;
  for (const char* name : {kHooksLibrary, kSimLibrary}) {
    std::error_code error;
    if (!fs::exists(directory / name, error)) continue;
    const std::string content = content_of(directory / name);
    manifest += "sha256 " + sha256(content) + " " + name + "\n";
    members += tar_member(name, content);
  }
  const fs::path fresh = file.string() + "." + std::to_string(getpid());
  const std::string archive = tar_member(kManifest, manifest) + members + std::string(2 * kTarBlock, '\0');
  std::error_code error;
  try {
    write_content(fresh, archive);
  } catch (const Failure&) {
    fs::remove(fresh, error);
    throw;
  }
  fs::rename(fresh, file, error);
  if (error) throw Failure("cannot write " + file.string() + ": " + error.message());
}

ExchangeFile read_exchange_file(const fs::path& file) {
  const std::map<std::string, std::string> members = read_tar(content_of(file));
  const auto manifest = members.find(std::string(kManifest));
  if (manifest == members.end() || !manifest->second.starts_with(std::string(kFirstLine) + "\n")) {
    throw Failure(file.string() + " was not written by devsan build --export");
  }
  ExchangeFile read;
  std::istringstream lines(manifest->second);
  for (std::string word; lines >> word;) {
    std::string value;
    if (word == "key") lines >> read.key;
    if (word == "torch") lines >> read.torch;
    if (word != "sha256" || !(lines >> value >> word)) continue;
    const auto member = members.find(word);
    if (!is_library(word) || member == members.end() || sha256(member->second) != value) {
      throw Failure(file.string() + " is damaged: " + word + " is missing in it or not as it was written");
    }
    read.libraries.emplace_back(*member);
  }
  if (read.key.empty() || read.libraries.empty() || read.libraries.front().first != kHooksLibrary) {
    throw Failure(file.string() + " is damaged: it names no hooks");
  }
  return read;
}

void write_libraries(const ExchangeFile& file, const fs::path& directory) {
  for (const auto& [name, content] : file.libraries) write_content(directory / name, content);
}

}  // namespace devsan::launch
