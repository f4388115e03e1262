// The byte code of a Python function as the compiler made it, without what the interpreter wrote into it while it ran.
// Offsets are in bytes, as frames count; every instruction begins at an even one.
//
// With the GIL (PythonSection); runs no code of the program.
#pragma once

namespace devsan::hooks {

class ByteCode {
 public:
  // `code` must live as long as this. Empty where its bytes cannot be had, or are very many.
  explicit ByteCode(const void* code) noexcept;
  ~ByteCode();
  ByteCode(const ByteCode&) = delete;
  ByteCode& operator=(const ByteCode&) = delete;

  int size() const noexcept { return size_; }
  // Whether the instruction at an offset is a `raise` or `assert`, written or made by the compiler.
  bool raises_at(int offset) const noexcept;

 private:
  void* owned_ = nullptr;  // a bytes object
  const unsigned char* text_ = nullptr;
  int size_ = 0;
};

}  // namespace devsan::hooks
