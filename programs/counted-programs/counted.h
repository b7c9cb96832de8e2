/* Counts each call of the allocator whose functions are COUNTED(malloc) and so on, and writes the sums to stderr when the process ends by `exit`. Tests put it
   into programs that know nothing of it. Each call that allocates goes through a function of its own, whose name a profiler finds on the stack. */
#include <stdatomic.h>
#include <stdio.h>
#include <stddef.h>

static atomic_ulong counted_allocations, counted_bytes, counted_reallocations, counted_frees;

static void *counted_given(void *block, size_t bytes) {
    if (block) {
        counted_allocations++;
        counted_bytes += bytes;
    }
    return block;
}

__attribute__((noinline)) void *counted_malloc(size_t bytes) {
    return counted_given(COUNTED(malloc)(bytes), bytes);
}

__attribute__((noinline)) void *counted_calloc(size_t count, size_t bytes) {
    return counted_given(COUNTED(calloc)(count, bytes), count * bytes);
}

/* Programs that free by `realloc` are none of those that are counted. */
__attribute__((noinline)) void *counted_realloc(void *block, size_t bytes) {
    void *new = counted_given(COUNTED(realloc)(block, bytes), bytes);
    if (new && block) {
        counted_reallocations++;
        counted_frees++;
    }
    return new;
}

__attribute__((noinline)) void counted_free(void *block) {
    if (block) counted_frees++;
    COUNTED(free)(block);
}

__attribute__((destructor)) static void counted_print(void) {
    dprintf(2, "counted: allocations=%lu bytes=%lu reallocations=%lu leaked_blocks=%lu\n", counted_allocations, counted_bytes, counted_reallocations,
            counted_allocations - counted_frees);
}
