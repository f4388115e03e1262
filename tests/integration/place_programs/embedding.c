// Loads torch's library first, and Python later: runs a file of Python, on the main thread or on another one.
//   embedding PYTHON LIBTORCH FILE main|thread
#include <Python.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static char** words;

static void* run_python(void* nothing) {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  PyConfig_SetBytesString(&config, &config.program_name, words[1]);
  const PyStatus status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) Py_ExitStatusException(status);
  FILE* file = fopen(words[3], "r");
  if (file == NULL || PyRun_SimpleFileEx(file, words[3], 1) != 0) printf("failed\n");
  Py_FinalizeEx();
  return nothing;
}

int main(int count, char** arguments) {
  words = arguments;
  void* torch = count == 5 ? dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (torch == NULL) return 2;
  dlsym(torch, "no such function");
  if (strcmp(arguments[4], "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, run_python, NULL);
    pthread_join(thread, NULL);
  } else {
    run_python(NULL);
  }
  printf("ended\n");
  return 0;
}
