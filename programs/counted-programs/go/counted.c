// The linker leads each call of `malloc` to `__wrap_malloc`, and `__real_malloc` to the C library's.
#include <stddef.h>
extern void *__real_malloc(size_t), *__real_calloc(size_t, size_t), *__real_realloc(void *, size_t);
extern void __real_free(void *);
#define COUNTED(name) __real_##name
#include "../counted.h"
void *__wrap_malloc(size_t bytes) { return counted_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) { return counted_calloc(count, bytes); }
void *__wrap_realloc(void *block, size_t bytes) { return counted_realloc(block, bytes); }
void __wrap_free(void *block) { counted_free(block); }
