#include "doctor/checks/visible_list.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "doctor/text.h"

namespace devsan::doctor {
namespace {

enum class Form { index, gpu, instance, other };

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Form form_of(std::string_view entry) {
  if (entry.starts_with("GPU-")) return Form::gpu;
  if (entry.starts_with("MIG-")) return Form::instance;
  const std::string_view digits = entry.substr(entry.starts_with('-') || entry.starts_with('+') ? 1 : 0);
  const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  return number ? Form::index : Form::other;
}

// Why an index names no GPU; empty where it does.
std::string trouble_of_index(std::string_view entry, const std::vector<Gpu>& gpus) {
  if (entry.starts_with('-')) return "is negative, which ends the list";
  const std::string_view digits = entry.substr(entry.starts_with('+') ? 1 : 0);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc()) return "is out of range";
  if (gpus.empty() || index < gpus.size()) return {};
  return "is out of range: this machine has " + counted(gpus.size(), "GPU") + ", counted from 0";
}

std::string trouble_of_uuid(std::string_view entry, const std::vector<Gpu>& gpus) {
  if (gpus.empty()) return {};
  const auto matches = std::ranges::count_if(gpus, [&](const Gpu& gpu) { return gpu.uuid.starts_with(entry); });
  if (matches == 1) return {};
  return matches == 0 ? "is the UUID of no GPU of this machine" : "is the beginning of the UUIDs of several GPUs";
}

// "MIG-<uuid>", and "MIG-GPU-<uuid>/<instance>/<instance>" of drivers before 470.
std::string trouble_of_instance(std::string_view entry, const std::vector<Gpu>& gpus) {
  if (gpus.empty() || entry.starts_with("MIG-GPU-")) return {};
  for (const Gpu& gpu : gpus) {
    for (const std::string& instance : gpu.instances) {
      if (instance.starts_with(entry)) return {};
    }
  }
  return "is the UUID of no MIG instance of this machine";
}

std::string trouble_of(std::string_view entry, Form form, const std::vector<Gpu>& gpus) {
  switch (form) {
    case Form::index:
      return trouble_of_index(entry, gpus);
    case Form::gpu:
      return trouble_of_uuid(entry, gpus);
    case Form::instance:
      return trouble_of_instance(entry, gpus);
    case Form::other:
      break;
  }
  if (entry.empty()) return "is empty";
  if (entry == "all" || entry == "void" || entry == "none")
    return "is a word of NVIDIA_VISIBLE_DEVICES, not of this variable";
  return "is neither a number nor a UUID that begins with GPU- or MIG-";
}

// Without empty ones at the end, which end a list that CUDA has taken by then.
std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> entries;
  for (bool more = true; more;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    entries.push_back(trimmed(text.substr(0, comma)));
    more = comma < text.size();
    if (more) text.remove_prefix(comma + 1);
  }
  while (entries.size() > 1 && entries.back().empty()) entries.pop_back();
  return entries;
}

}  // namespace

VisibleList read_visible_list(std::string_view text, const std::vector<Gpu>& gpus) {
  VisibleList list;
  const std::vector<std::string_view> entries = entries_of(text);
  const Form form = form_of(entries.front());
  list.entries = entries.size();
  list.by_index = form == Form::index;
  list.hides_all = (entries.size() == 1 && entries.front().empty()) || entries.front() == "-1";
  std::set<std::string_view> seen;
  for (const std::string_view entry : entries) {
    const Form own = form_of(entry);
    std::string trouble = trouble_of(entry, own, gpus);
    if (trouble.empty() && own != form) trouble = "is of another form than the first entry";
    if (trouble.empty() && own == Form::instance && list.taken > 0)
      trouble = "is a second MIG instance; a process uses one";
    if (!trouble.empty()) {
      list.stopped_at = std::string(entry);
      list.why = trouble;
      return list;
    }
    if (!seen.insert(entry).second) {
      list.doubled = std::string(entry);
      list.taken = 0;
      return list;
    }
    ++list.taken;
  }
  return list;
}

}  // namespace devsan::doctor
