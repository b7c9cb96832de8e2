/* An allocator of the program's own, on mappings, without a name that anybody knows: cc -include pool.h server.c. Blocks of a size
 * class are given out again; chunks are never given back. With POOL_IS_MALLOC it goes by malloc's name. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { POOL_CHUNK = 1 << 20, POOL_HEAD = 16, POOL_CLASSES = 32 };

#ifndef POOL_HELD_AT_START
#define POOL_HELD_AT_START (4 << 20)
#endif

static char *pool_at, *pool_end;
static void *pool_free[POOL_CLASSES];

static void *pool_fresh(size_t bytes)
{
    if ((size_t)(pool_end - pool_at) < bytes) {
        size_t chunk = bytes > POOL_CHUNK ? bytes : POOL_CHUNK;
        pool_at = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pool_at == MAP_FAILED)
            abort();
        pool_end = pool_at + chunk;
    }
    void *block = pool_at;
    pool_at += bytes;
    return block;
}

static void *pool_take(size_t bytes)
{
    int class = 4;
    while (((size_t)1 << class) < bytes)
        class++;
    void **block = pool_free[class];
    if (block)
        pool_free[class] = *block;
    else
        block = (void **)((char *)pool_fresh(((size_t)1 << class) + POOL_HEAD) + POOL_HEAD);
    ((size_t *)block)[-1] = (size_t)class;
    return block;
}

static void *pool_take_zeroed(size_t count, size_t bytes)
{
    return memset(pool_take(count * bytes), 0, count * bytes);
}

static void pool_give(void *block)
{
    if (!block)
        return;
    size_t class = ((size_t *)block)[-1];
    *(void **)block = pool_free[class];
    pool_free[class] = block;
}

/* What a server holds for its work before anybody asks it. */
static __attribute__((constructor)) void pool_warm(void)
{
    memset(pool_take(POOL_HELD_AT_START), 1, POOL_HELD_AT_START);
}

#ifdef POOL_IS_MALLOC
/* By these names the program's own libraries find it as well. malloc begins with a jump that cannot be moved elsewhere, so no call of it is seen. */
__attribute__((used)) void *pool_malloc(size_t bytes) { return pool_take(bytes); }
__asm__(".text\n.globl malloc\n.type malloc, @function\nmalloc: jrcxz 1f\n1: jmp pool_malloc\n.size malloc, .-malloc\n");
void *calloc(size_t count, size_t bytes) { return pool_take_zeroed(count, bytes); }
void free(void *block) { pool_give(block); }

void *realloc(void *block, size_t bytes)
{
    size_t held = block ? (size_t)1 << ((size_t *)block)[-1] : 0;
    if (held >= bytes)
        return block;
    void *larger = memcpy(pool_take(bytes), block ? block : "", held);
    pool_give(block);
    return larger;
}
#else
#define malloc(bytes) pool_take(bytes)
#define calloc(count, bytes) pool_take_zeroed(count, bytes)
#define free(block) pool_give(block)
#endif
