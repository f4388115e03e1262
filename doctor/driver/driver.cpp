#include "doctor/driver/driver.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "doctor/driver/queries.h"

namespace devsan::doctor {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxAnswerBytes = 1 << 20;

Json as_json(const Gpu& gpu) {
  return {{"name", gpu.name},   {"uuid", gpu.uuid}, {"memory", gpu.memory},      {"major", gpu.major},
          {"minor", gpu.minor}, {"mig", gpu.mig},   {"instances", gpu.instances}};
}

Json as_json(const std::vector<Gpu>& gpus) {
  Json list = Json::array();
  for (const Gpu& gpu : gpus) list.push_back(as_json(gpu));
  return list;
}

std::vector<Gpu> gpus_of(const Json& list) {
  std::vector<Gpu> gpus;
  for (const Json& item : list) {
    gpus.push_back({item.at("name"), item.at("uuid"), item.at("memory"), item.at("major"), item.at("minor"),
                    item.at("mig"), item.at("instances")});
  }
  return gpus;
}

std::string written(const DriverAnswer& answer) {
  const Json json = {{"path", answer.cuda_path},           {"load_error", answer.cuda_load_error},
                     {"status", answer.init_status},       {"cuda", answer.cuda_version},
                     {"visible", as_json(answer.visible)}, {"nvml_error", answer.nvml_error},
                     {"version", answer.version},          {"all", as_json(answer.all)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

DriverAnswer read_back(const std::string& text) {
  DriverAnswer answer;
  const Json json = Json::parse(text);
  answer.cuda_path = json.at("path");
  answer.cuda_load_error = json.at("load_error");
  answer.init_status = json.at("status");
  answer.cuda_version = json.at("cuda");
  answer.visible = gpus_of(json.at("visible"));
  answer.nvml_error = json.at("nvml_error");
  answer.version = json.at("version");
  answer.all = gpus_of(json.at("all"));
  return answer;
}

// What the driver prints is not for the user's terminal, and a crash of it leaves no core.
[[noreturn]] void answer_in_child(const DriverLibraries& libraries, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, standard);
  DriverAnswer answer;
  ask_nvml(libraries.nvml, answer);
  ask_cuda(libraries.cuda, answer);
  const std::string whole = written(answer);
  std::string_view text = whole;
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  _exit(text.empty() ? 0 : 1);
}

// All that the other process writes until it ends; nothing where that takes longer than until `deadline`.
std::optional<std::string> read_until(int fd, Clock::time_point deadline) {
  std::string text;
  while (text.size() < kMaxAnswerBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{fd, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(std::max<long long>(left, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    std::array<char, 4096> part;
    const ssize_t size = read(fd, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return text;
}

DriverAnswer in_trouble(std::string why) {
  DriverAnswer answer;
  answer.trouble = std::move(why);
  return answer;
}

}  // namespace

DriverAnswer ask_driver(const DriverLibraries& libraries, std::chrono::milliseconds patience) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return in_trouble(std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    answer_in_child(libraries, ends[1]);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return in_trouble("no process could be started for it");
  }
  const std::optional<std::string> text = read_until(ends[0], Clock::now() + patience);
  close(ends[0]);
  if (!text) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) return in_trouble("gives no answer within " + std::to_string(patience.count() / 1000) + " s");
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return in_trouble("ends its process by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")");
  }
  try {
    return read_back(*text);
  } catch (const Json::exception&) {
    return in_trouble("ends its process before it answers");
  }
}

std::string init_error_name(int status) {
  constexpr std::array<std::pair<int, const char*>, 12> kNames = {{{1, "CUDA_ERROR_INVALID_VALUE"},
                                                                   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                                   {3, "CUDA_ERROR_NOT_INITIALIZED"},
                                                                   {34, "CUDA_ERROR_STUB_LIBRARY"},
                                                                   {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                                                                   {100, "CUDA_ERROR_NO_DEVICE"},
                                                                   {101, "CUDA_ERROR_INVALID_DEVICE"},
                                                                   {304, "CUDA_ERROR_OPERATING_SYSTEM"},
                                                                   {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
                                                                   {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
                                                                   {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
                                                                   {999, "CUDA_ERROR_UNKNOWN"}}};
  for (const auto& [number, name] : kNames) {
    if (number == status) return name;
  }
  return "error " + std::to_string(status);
}

}  // namespace devsan::doctor
