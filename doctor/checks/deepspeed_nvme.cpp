// What ZeRO-3 offloads to NVMe: the folder that it goes to, the buffers that it passes through, and the settings of
// what reads and writes.
#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/config/deepspeed.h"
#include "doctor/config/key_values.h"
#include "doctor/config/known_keys.h"
#include "doctor/memory/estimate.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kOffloadPage[] = "https://www.deepspeed.ai/docs/config-json/#parameter-offloading";
constexpr char kOptimizerPage[] = "https://www.deepspeed.ai/docs/config-json/#optimizer-offloading";
constexpr char kAioPage[] = "https://www.deepspeed.ai/docs/config-json/#asynchronous-io";

constexpr std::uint64_t kLeastOnDisk = 1 << 20;  // bytes: DeepSpeed keeps what is smaller in memory
constexpr std::uint64_t kAlignment = 512;        // of what is read and written past the kernel's cache (O_DIRECT)

class NvmeChecker {
 public:
  NvmeChecker(const Facts& facts, DeepSpeedSettings settings, Diagnosis& diagnosis)
      : facts_(facts), settings_(std::move(settings)), view_(view_of(settings_.value)), diagnosis_(diagnosis) {}

  void check() {
    if (!view_.param.on_nvme() && !view_.optimizer.on_nvme()) return;
    check_reader();
    if (view_.optimizer.on_nvme()) check_optimizer();
    if (view_.param.on_nvme()) check_param();
    check_locked();
    if (!diagnosis_.has(Check::deepspeed_nvme)) {
      diagnosis_.ok(Check::deepspeed_nvme, "What is offloaded to NVMe has a folder, and buffers that hold it.",
                    kOffloadPage);
    }
  }

 private:
  void tell(Level level, std::string found, std::string means, std::string cure, std::string source) {
    diagnosis_.add(
        {Check::deepspeed_nvme, level, std::move(found), std::move(means), std::move(cure), std::move(source)});
  }

  const Json* at(std::string_view path) const { return find_value(settings_.value, path); }
  std::string key(std::string_view path) const { return settings_.file + ": " + std::string(path); }

  std::uint64_t block_size() const {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(whole_number(at("aio.block_size")).value_or(1 << 20), 0));
  }

  std::uint64_t weight_bytes() const { return static_cast<std::uint64_t>(state_bytes(view_).weights); }

  // ---- aio

  // DeepSpeed hands these to C++ as they are. The check of keys tells what is no number.
  void check_reader() {
    for (const char* name : {"block_size", "queue_depth", "intra_op_parallelism"}) {
      const std::string path = std::string("aio.") + name;
      const Json* value = at(path);
      if (value == nullptr || !fits(known_keys().sections.at("aio").keys.at(name), *value)) continue;
      if (value->is_number_integer() && value->get<std::int64_t>() > 0) continue;
      tell(Level::error, path + " is " + shown(*value) + ".",
           "DeepSpeed takes it as it is, and fails when it makes what reads and writes.",
           "Write a whole number above 0, in digits (1048576, not 1e6).", kAioPage);
    }
    const Json* const size = at("aio.block_size");
    if (size != nullptr && size->is_number_integer() && block_size() % kAlignment != 0) {
      tell(Level::error, "aio.block_size is " + std::to_string(block_size()) + ", no multiple of 512.",
           "DeepSpeed reads and writes past the kernel's cache (O_DIRECT), and the kernel refuses such blocks.",
           "Use a multiple of 4096, such as 1048576.", kAioPage);
    }
  }

  // ---- folders

  void check_folder(const std::string& name, const Offload& offload, const char* page) {
    if (offload.path.empty()) {
      tell(Level::error, name + " asks for nvme without nvme_path.", "DeepSpeed has no folder to write to and fails.",
           "Add " + settings_.setting(name, "nvme_path", "/…") + ", a folder on a local NVMe disk.", page);
      return;
    }
    const auto found = facts_.folders.find(offload.path);
    if (found == facts_.folders.end()) return;
    const Folder& folder = found->second;
    const std::string path = name + ".nvme_path " + shown(Json(offload.path));
    if (!folder.is_directory) {
      tell(Level::error, path + ": " + folder.nearest + " is no folder.", "DeepSpeed cannot make its files there.",
           "Name a folder on a local NVMe disk.", page);
    } else if (!folder.writable) {
      tell(Level::error,
           path + (folder.there ? " cannot be written to by this user."
                                : " is not there, and this user may not make it in " + folder.nearest + "."),
           "DeepSpeed fails with a PermissionError when it makes its files.",
           "Mount the disk, or give the folder to the user that trains.", page);
    } else if (!folder.there) {
      tell(Level::warning, path + " is not there.",
           "DeepSpeed makes it in " + folder.nearest + ": where a disk is to be mounted, it fills the disk beneath.",
           "Mount the disk or make the folder before the run, on each node.", page);
    }
    if (folder.is_directory && !folder.kind.empty()) check_kind(path, folder, page);
  }

  void check_kind(const std::string& path, const Folder& folder, const char* page) {
    const bool in_memory = folder.kind == "tmpfs" || folder.kind == "ramfs";
    tell(Level::warning, path + " is on " + folder.kind + ".",
         in_memory ? "What is offloaded stays in host memory. Before Linux 6.6, DeepSpeed cannot open files there "
                     "(O_DIRECT)."
                   : "Each step reads and writes all that is offloaded over the network.",
         "Name a folder on a local NVMe disk.", page);
  }

  // What one folder is to hold is the sum over both kinds and all ranks of a node.
  void check_room(const std::string& name, const Offload& offload, double bytes_each, const char* page) {
    const auto found = facts_.folders.find(offload.path);
    const std::optional<std::uint64_t> params = facts_.params_of_rank();
    if (found == facts_.folders.end() || !params || !found->second.is_directory) return;
    const auto ranks = static_cast<double>(std::max<std::uint64_t>(facts_.gpus_per_node().value_or(1), 1));
    double& need = need_of_folder_[offload.path];
    need += static_cast<double>(*params) * bytes_each * ranks;
    const auto free = static_cast<double>(found->second.free);
    if (need <= free) return;
    tell(Level::error,
         name + ".nvme_path " + shown(Json(offload.path)) + " has " + gibibytes(free) +
             " left, and the ranks of a node write " + gibibytes(need) + ".",
         "Training fails with \"No space left on device\".", "Use a larger disk, or more nodes.", page);
  }

  // ---- buffers

  // Tensors of a group that the optimizer works on: weights, gradient, and its states; 0 where it is not known.
  std::uint64_t tensors_of_group() const {
    const std::string& type = view_.optimizer_type;
    if (type == "adam" || type == "adamw") return 4;
    return type == "lion" || type == "adagrad" ? 3 : 0;
  }

  void check_optimizer() {
    const Offload& offload = view_.optimizer;
    const StateBytes bytes = state_bytes(view_);
    check_folder("offload_optimizer", offload, kOptimizerPage);
    // Weights, states and gradients.
    check_room("offload_optimizer", offload, bytes.master + bytes.moments + bytes.offloaded_gradients, kOptimizerPage);
    const std::uint64_t tensors = tensors_of_group();
    if (tensors == 0) return;
    const std::string count = "offload_optimizer.buffer_count is " + std::to_string(offload.buffer_count);
    if (offload.buffer_count < tensors) {
      tell(Level::error,
           count + ", and " + shown(*at("optimizer.type")) + " works on " + std::to_string(tensors) + " tensors.",
           "DeepSpeed fails an assertion in the step that finds no free buffer.",
           "Set it to " + std::to_string(tensors) + " or more.",
           key("zero_optimization.offload_optimizer.buffer_count"));
      return;
    }
    check_pipeline(count, tensors);
  }

  // A group is read before, and another one written after, the one at work.
  void check_pipeline(const std::string& count, std::uint64_t tensors) {
    const Offload& offload = view_.optimizer;
    const std::uint64_t groups = 1 + (offload.pipeline_read ? 1 : 0) + (offload.pipeline_write ? 1 : 0);
    if (offload.buffer_count >= groups * tensors) return;
    const std::optional<std::uint64_t> params = facts_.params_of_rank();
    const bool certain = params && view_.sub_group_size > 0 && *params / view_.sub_group_size >= groups;
    tell(certain ? Level::error : Level::warning,
         count + ", and with its pipeline up to " + std::to_string(groups) + " groups of " + std::to_string(tensors) +
             " tensors are in memory.",
         "If the model has as many groups (sub_group_size), DeepSpeed \"ran out of swap buffers\" in a step.",
         "Set it to " + std::to_string(groups * tensors) + ".",
         key("zero_optimization.offload_optimizer.buffer_count"));
  }

  void check_param() {
    const Offload& offload = view_.param;
    check_folder("offload_param", offload, kOffloadPage);
    check_room("offload_param", offload, static_cast<double>(weight_bytes()), kOffloadPage);
    if (offload.buffer_count == 0) {
      tell(Level::error, "offload_param.buffer_count is 0.", "DeepSpeed has no buffer to read a parameter into.",
           "Set it to 5, as by default, or more.", key("zero_optimization.offload_param.buffer_count"));
    }
    const std::uint64_t least = std::max(kLeastOnDisk, block_size());
    if (offload.buffer_size * weight_bytes() < least) {
      tell(Level::error,
           "offload_param.buffer_size is " + std::to_string(offload.buffer_size) +
               ", fewer than any parameter that is "
               "offloaded has.",
           "DeepSpeed offloads a rank's part of a parameter from " + std::to_string(least) +
               " bytes on, and fails with \"More elements … than buffer size\".",
           "Set it to the largest parameter's elements, divided by the world size, or more.",
           key("zero_optimization.offload_param.buffer_size"));
    }
    if (const auto params = facts_.params_of_rank(); params && *params <= offload.max_in_cpu) {
      tell(Level::warning,
           "offload_param.max_in_cpu is " + std::to_string(offload.max_in_cpu) + ", and a rank has " +
               billions(*params) + " parameters.",
           "All of them stay in pinned host memory, and none on NVMe.",
           "Set \"max_in_cpu\" to what may stay in memory.", key("zero_optimization.offload_param.max_in_cpu"));
    }
  }

  // ---- locked memory

  void check_locked() {
    const std::optional<Limit>& limit = facts_.machine.locked_memory;
    if (!limit || limit->unlimited) return;
    const BufferBytes buffers = buffer_bytes(view_, facts_.params_of_rank());
    if (buffers.total() <= static_cast<double>(limit->value)) return;
    tell(Level::error,
         "A process may lock " + gibibytes(static_cast<double>(limit->value)) + " of memory, and DeepSpeed locks " +
             gibibytes(buffers.total()) + " or more as buffers for NVMe.",
         "It locks them whatever pin_memory says, and crashes where it cannot.",
         "Start the container with `--ulimit memlock=-1`, set memlock in /etc/security/limits.conf, or make "
         "buffer_size, "
         "buffer_count or sub_group_size smaller.",
         kOffloadPage);
  }

  const Facts& facts_;
  const DeepSpeedSettings settings_;
  DeepSpeedView view_;
  Diagnosis& diagnosis_;
  std::map<std::string, double> need_of_folder_;
};

}  // namespace

void check_deepspeed_nvme(const Facts& facts, Diagnosis& diagnosis) {
  if (auto settings = facts.deepspeed_settings()) NvmeChecker(facts, std::move(*settings), diagnosis).check();
}

}  // namespace devsan::doctor
