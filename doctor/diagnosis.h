// What a check says: one line each, as data. Nothing here knows how it is shown.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::doctor {

enum class Check {
#define DEVSAN_CHECK(name, group, help) name,
#include "doctor/checks.def"
#undef DEVSAN_CHECK
};

enum class Group {
#define DEVSAN_GROUP(name, heading) name,
#include "doctor/groups.def"
#undef DEVSAN_GROUP
};

enum class Level { ok, warning, error };

struct CheckInfo {
  Check check;
  Group group;
  std::string name;  // "visible-devices"
};
const CheckInfo& info_of(Check check);

struct GroupInfo {
  Group group;
  std::string_view name;
  std::string_view heading;
};
std::span<const GroupInfo> all_groups();
const GroupInfo& info_of(Group group);

std::string_view name_of(Level level);

struct Line {
  Check check;
  Level level;
  std::string found;                 // one sentence: what is so
  std::string means;                 // what follows from it; may be empty
  std::string cure;                  // what to do; empty where all is well
  std::string source;                // a public URL, or the file and the key
  std::vector<std::string> steps{};  // of a calculation
};

// What the checks of one subject append to.
class Diagnosis {
 public:
  void ok(Check check, std::string found, std::string source = {}) {
    lines_.push_back({check, Level::ok, std::move(found), {}, {}, std::move(source)});
  }
  void add(Line line) { lines_.push_back(std::move(line)); }

  const std::vector<Line>& lines() const { return lines_; }
  std::size_t count(Level level) const;
  bool has(Check check) const;

  // In the order of the list of checks; lines of one check keep theirs.
  void sort();
  // Of sorted lines, keeps the first ones of each check and says how many more there are.
  void shorten();

 private:
  std::vector<Line> lines_;
};

}  // namespace devsan::doctor
