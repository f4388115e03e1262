// The little of the C++ runtime that is used here, in place of the library's: that one comes with exceptions, and its
// pool for them would take memory in every process at start-up.
#include <cstdlib>
#include <new>

#include "preload/say.h"

namespace {

[[noreturn]] void give_up(const char* why) {
  devsan::say(why);
  std::abort();
}

void* allocate(std::size_t size) {
  void* memory = std::malloc(size != 0 ? size : 1);
  if (memory == nullptr) give_up("no memory left");
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size);
}
void* operator new[](std::size_t size) {
  return allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace std {

void __throw_length_error(const char* what) {
  give_up(what);
}
void __throw_logic_error(const char* what) {
  give_up(what);
}
void __throw_out_of_range(const char* what) {
  give_up(what);
}
void __throw_out_of_range_fmt(const char* what, ...) {
  give_up(what);
}
void __throw_bad_alloc() {
  give_up("no memory left");
}
void __throw_bad_array_new_length() {
  give_up("no memory left");
}

}  // namespace std
