#include "report/program/program.h"

#include <algorithm>
#include <utility>

namespace devsan::program {
namespace {

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

std::size_t common_start(std::string_view one, std::string_view other) {
  return static_cast<std::size_t>(std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first -
                                  one.begin());
}

bool ends_with_path(std::string_view path, std::string_view end) {
  return path == end || (path.ends_with(end) && path[path.size() - end.size() - 1] == '/');
}

}  // namespace

const SourceFile& Program::add(std::string path, std::string text) {
  const auto known = files_.find(path);
  if (known != files_.end()) return *known->second;
  auto file = std::make_unique<SourceFile>(path, std::move(text));
  return *files_.emplace(std::move(path), std::move(file)).first->second;
}

const SourceFile* Program::file(std::string_view path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : found->second.get();
}

std::vector<const SourceFile*> Program::files() const {
  std::vector<const SourceFile*> found;
  for (const auto& [path, file] : files_) found.push_back(file.get());
  return found;
}

const SourceFile* Program::module(std::string_view dotted, const SourceFile& from) const {
  std::string folder;
  const bool relative = dotted.starts_with('.');
  if (relative) {
    folder = folder_of(from.path());
    dotted.remove_prefix(1);
    for (; dotted.starts_with('.'); dotted.remove_prefix(1)) folder = folder_of(folder);
  }
  std::string name(dotted);
  std::replace(name.begin(), name.end(), '.', '/');
  if (relative) {
    const std::string base = folder.empty() ? name : name.empty() ? folder : folder + "/" + name;
    const SourceFile* plain = name.empty() ? nullptr : file(base + ".py");
    return plain != nullptr ? plain : file(base + "/__init__.py");
  }
  const SourceFile* best = nullptr;
  for (const auto& [path, each] : files_) {
    if (!ends_with_path(path, name + ".py") && !ends_with_path(path, name + "/__init__.py")) continue;
    const bool nearer = best == nullptr || common_start(path, from.path()) > common_start(best->path(), from.path());
    if (nearer) best = each.get();
  }
  return best;
}

}  // namespace devsan::program
