// What objects of a newer g++ and glibc ask for, made of what glibc 2.28 has. Hidden, so that it serves the library it
// is linked into and nobody else.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct stat;
extern int __fxstat(int version, int descriptor, struct stat* status);
extern int __lxstat(int version, const char* path, struct stat* status);
extern int __xstat(int version, const char* path, struct stat* status);

enum { kStatVersion = 1 };  // _STAT_VER of x86-64

#define DEVSAN_HIDDEN __attribute__((visibility("hidden")))

// Functions of their own since 2.33; before, inline calls of these.
DEVSAN_HIDDEN int fstat(int descriptor, struct stat* status) {
  return __fxstat(kStatVersion, descriptor, status);
}
DEVSAN_HIDDEN int lstat(const char* path, struct stat* status) {
  return __lxstat(kStatVersion, path, status);
}
DEVSAN_HIDDEN int stat(const char* path, struct stat* status) {
  return __xstat(kStatVersion, path, status);
}

// In libc since 2.34; before, in a static part of libpthread, which says like this whose handlers they are.
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void* library);
extern void* __dso_handle DEVSAN_HIDDEN;
DEVSAN_HIDDEN int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  return __register_atfork(prepare, parent, child, &__dso_handle);
}

// Since 2.30.
DEVSAN_HIDDEN pid_t gettid(void) {
  return (pid_t)syscall(SYS_gettid);
}

// Since 2.32; shared_ptr counts without atomics while it is true. False is always right.
DEVSAN_HIDDEN char __libc_single_threaded = 0;
