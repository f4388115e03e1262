// The little that devsan asks of ELF files on disk. Anything that is no sound 64-bit ELF file answers with nothing.
#pragma once

#include <elf.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace devsan::launch {

class ElfFile {
 public:
  explicit ElfFile(const std::filesystem::path& path);

  std::string symbol_names();  // the string table of the dynamic symbols
  std::vector<std::string> needed_libraries();
  bool is_static_program() const;  // has no dynamic loader, so that nothing can be preloaded into it

 private:
  std::vector<Elf64_Dyn> dynamic_entries();
  bool read(std::uint64_t offset, void* out, std::size_t size);

  std::ifstream file_;
  Elf64_Half type_ = ET_NONE;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace devsan::launch
