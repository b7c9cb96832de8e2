/* Hazard: a thread's stack, and right behind it in the same mapping a page that cannot be read.
 * glibc 2.42 guards the stacks of threads so on Linux 6.13 and later: by a mark that no mapping shows, where an older one has a mapping
 * without access. Whoever reads on from a thread's control block to the end of its mapping runs into the guard of the next thread's stack.
 *
 * A thread on such a stack makes 10 blocks of 64 bytes (guarded_block) and frees each at once: 10 temporary.
 *   guarded_block  10 allocations, 640 bytes, 10 temporary, 0 leaked
 * pthread_create makes the thread's table (dtv), freed as the next thing, as the stack is not glibc's: allocations 11, frees 11, temporary 11.
 * On a kernel that knows no such guard the page is unmapped, and nothing is tried. */
#define _GNU_SOURCE
#include "hazard.h"
#include <pthread.h>
#include <sys/mman.h>

enum { STACK_BYTES = 256 << 10, PAGE_BYTES = 4096, BLOCKS = 10, GUARD_INSTALL = 102 };

static FRAME void *guarded_block(size_t size) { void *p = malloc(size); KEEP(p); return p; }

static void *worker(void *unused) {
    for (int i = 0; i < BLOCKS; i++) free(guarded_block(64));
    return unused;
}

int main(void) {
    char *stack = mmap(NULL, STACK_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(stack != MAP_FAILED, 10);
    if (madvise(stack + STACK_BYTES, PAGE_BYTES, GUARD_INSTALL) != 0) munmap(stack + STACK_BYTES, PAGE_BYTES);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    EXPECT(pthread_attr_setstack(&attributes, stack, STACK_BYTES) == 0, 11);
    EXPECT(pthread_create(&thread, &attributes, worker, NULL) == 0, 12);
    pthread_join(thread, NULL);
    return 0;
}
