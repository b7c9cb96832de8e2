// Preloaded beside a program: passes each call on to the allocator that the program has, and does nothing else. What it adds, any tool that is
// preloaded adds too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);

// The first call comes before any constructor.
static __attribute__((noinline, cold)) void find(void) {
    next_calloc = dlsym(RTLD_NEXT, "calloc");
    next_realloc = dlsym(RTLD_NEXT, "realloc");
    next_free = dlsym(RTLD_NEXT, "free");
    next_malloc = dlsym(RTLD_NEXT, "malloc");
}

#define FOUND(next) \
    if (__builtin_expect(!(next), 0)) find()

void *malloc(size_t bytes) {
    FOUND(next_malloc);
    return next_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    FOUND(next_calloc);
    return next_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes) {
    FOUND(next_realloc);
    return next_realloc(block, bytes);
}

void free(void *block) {
    FOUND(next_free);
    next_free(block);
}
