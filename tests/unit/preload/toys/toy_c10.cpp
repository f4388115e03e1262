// Stands for libc10.so: of it only a constructor's name is looked at.
extern "C" void toy_error() __asm__(TOY_CONSTRUCTOR);
void toy_error() {}
