#include "preload/elf_image.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace {

using devsan::ElfImage;

// Never closed, so none of those that the patcher's tests see unloaded.
const link_map* open_object(const char* name) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(handle != nullptr);
  return static_cast<const link_map*>(handle);
}

ElfImage image_of(const link_map* object) {
  return {object->l_addr, object->l_ld};
}

// The names in the file's dynamic symbol table, from its section headers: another way than the one under test. Without
// variables of threads, which have no address of their own.
std::set<std::string> defined_names(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(bytes.data() + header->e_shoff);
  std::set<std::string> names;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const char* strings = bytes.data() + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(bytes.data() + sections[i].sh_offset);
    for (std::size_t k = 1; k < sections[i].sh_size / sizeof *symbols; ++k) {
      const bool defined = symbols[k].st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbols[k].st_info) != STB_LOCAL;
      if (defined && ELF64_ST_TYPE(symbols[k].st_info) != STT_TLS) names.insert(strings + symbols[k].st_name);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("every symbol of the C library is found where dlsym finds it") {
  const link_map* libc = open_object("libc.so.6");
  const ElfImage image = image_of(libc);
  std::size_t different = 0;
  std::size_t found = 0;
  const std::set<std::string> names = defined_names(libc->l_name);
  for (const std::string& name : names) {
    const void* expected = dlsym(const_cast<link_map*>(libc), name.c_str());
    const void* address = image.find_address(name.c_str());
    found += address != nullptr;
    if (address != expected) ++different;
    if (address != expected && different < 5) UNSCOPED_INFO(name << ": " << address << ", dlsym: " << expected);
  }
  CHECK(names.size() > 2000);
  CHECK(found > 2000);
  CHECK(different == 0);
}

TEST_CASE("a library with nothing but the old hash table is read too") {
  const link_map* toy = open_object(DEVSAN_TOYS "/libtoy_math_sysv.so");
  const ElfImage image = image_of(toy);
  const char* name = "_ZN3toy3addEii";
  REQUIRE(image.find_address(name) != nullptr);
  CHECK(image.find_address(name) == dlsym(const_cast<link_map*>(toy), name));
  CHECK(image.find_address("_ZN3toy6negateEi") == nullptr);
}

TEST_CASE("a symbol that an object only uses is not found in it") {
  const ElfImage caller = image_of(open_object(DEVSAN_TOYS "/libtoy_caller_lazy.so"));
  CHECK(caller.find_symbol("call_add") != nullptr);
  CHECK(caller.find_symbol("_ZN3toy3addEii") == nullptr);
  CHECK(caller.find_symbol("") == nullptr);
}

TEST_CASE("what an object is linked with is known by name") {
  const ElfImage caller = image_of(open_object(DEVSAN_TOYS "/libtoy_caller_lazy.so"));
  CHECK(caller.any_needed([](std::string_view name) { return name == "libtoy_math.so"; }));
  CHECK_FALSE(caller.any_needed([](std::string_view name) { return name == "libtorch_cpu.so"; }));
}

TEST_CASE("the kernel's own object is read without its pointers having been relocated") {
  std::size_t objects = 0;
  const auto visit = [](dl_phdr_info* info, std::size_t, void* count) {
    ++*static_cast<std::size_t*>(count);
    const ElfImage image(*info);
    if (std::strstr(info->dlpi_name, "vdso") != nullptr) {
      CHECK(image.find_symbol("__vdso_clock_gettime") != nullptr);
    }
    CHECK(image.find_symbol("no_object_has_this") == nullptr);
    return 0;
  };
  dl_iterate_phdr(visit, &objects);
  CHECK(objects >= 3);
}
