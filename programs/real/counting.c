// Preloaded beside a program: counts the calls of all its processes, in a file that they share. It knows nothing of stacks, sizes of freed blocks or threads, so
// there is little in it to be wrong. Like mallow's library it registers an exit handler and has a variable for each thread, for which libc allocates.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// What the file holds: five little-endian numbers.
static struct sums {
    uint64_t processes, allocations, frees, bytes, failed;
} before_the_file;
static struct sums *sums = &before_the_file;
static _Thread_local volatile char of_a_thread;

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_memalign)(size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void (*next_free)(void *);

#define ADD(sum, value) __atomic_fetch_add(&sums->sum, (value), __ATOMIC_RELAXED)

static void nothing(int status, void *unused) { (void)status, (void)unused; }

static void share(const char *path) {
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    struct sums *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED) return;
    sums = shared;
    ADD(processes, 1);
    ADD(allocations, before_the_file.allocations);
    ADD(frees, before_the_file.frees);
    ADD(bytes, before_the_file.bytes);
    ADD(failed, before_the_file.failed);
}

static void find(void) {
    if (next_malloc) return;
    next_calloc = dlsym(RTLD_NEXT, "calloc");
    next_realloc = dlsym(RTLD_NEXT, "realloc");
    next_memalign = dlsym(RTLD_NEXT, "memalign");
    next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    next_free = dlsym(RTLD_NEXT, "free");
    next_malloc = dlsym(RTLD_NEXT, "malloc");
}

// The file stands under the name that mallow's session has, so that programs that copy their environment allocate the same.
__attribute__((constructor)) static void begin(void) {
    int kept = errno;
    find();
    of_a_thread = 1;
    on_exit(nothing, NULL);
    const char *path = getenv("MALLOW_SESSION");
    if (path) share(path);
    errno = kept;
}

static void *counted(void *block, size_t bytes) {
    if (block) ADD(allocations, 1), ADD(bytes, bytes);
    else ADD(failed, 1);
    return block;
}

void *malloc(size_t bytes) { return find(), counted(next_malloc(bytes), bytes); }
void *memalign(size_t alignment, size_t bytes) { return find(), counted(next_memalign(alignment, bytes), bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return find(), counted(next_aligned_alloc(alignment, bytes), bytes); }

void *calloc(size_t count, size_t bytes) {
    size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) all = 0;
    return find(), counted(next_calloc(count, bytes), all);
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
    find();
    int error = next_posix_memalign(block, alignment, bytes);
    counted(error ? NULL : *block, bytes);
    return error;
}

void free(void *block) {
    if (!block) return;
    ADD(frees, 1);
    int kept = errno;
    find();
    next_free(block);
    errno = kept;
}

void *realloc(void *block, size_t bytes) {
    find();
    void *moved = next_realloc(block, bytes);
    if (block && (moved || bytes == 0)) ADD(frees, 1);
    return block && bytes == 0 && !moved ? NULL : counted(moved, bytes);
}

void *reallocarray(void *block, size_t count, size_t bytes) {
    size_t all = 0;
    if (!__builtin_mul_overflow(count, bytes, &all)) return realloc(block, all);
    ADD(failed, 1);
    errno = ENOMEM;
    return NULL;
}
