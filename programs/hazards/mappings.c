/* Hazard: memory that a program maps itself, under `record --mappings`.
 * Profilers hook mmap and munmap and take each munmap for the end of one mapping: but it may end a part, several, or none of ours. They miss
 * mappings that MAP_FIXED replaces, take reservations for memory, and lose what mremap moves.
 *
 * P is a page, 4,096 bytes. A cut is counted as a realloc in place; below, "-> n" is a cut or a mremap that leaves n pages: an
 * allocation of n pages, a free, a reallocation.
 *   anonymous_pair  mmap 3P, munmap                     1 allocation, 12,288 bytes, 1 free, temporary
 *   odd             mmap 5,000 bytes, munmap 5,000      1 allocation, 5,000 bytes, 1 free, temporary
 *   with_mmap64     mmap64 2P, kept                     1 allocation, 8,192 bytes
 *   cut_ends        mmap 10P, -> 9P, -> 8P, munmap      3 allocations, 27P = 110,592 bytes, 3 frees, each of the latest block: temporary
 *   cut_middle      mmap 5P, -> 4P in two parts, both   2 allocations, 9P = 36,864 bytes, 2 frees, both temporary
 *                   in one munmap with the hole
 *   span            4P reserved, 2P and 2P mapped in    2 allocations, 4P = 16,384 bytes, 2 frees, the second one's temporary
 *                   it, one munmap
 *   replace         mmap 4P = a, 2P = b mapped over its 3 allocations (4P, a -> 2P, b 2P), 32,768 bytes, 3 frees; a is temporary when it is
 *                   middle, PROT_NONE over all          cut, and b at the end
 *   reserve         PROT_NONE 256P, a page of it made   nothing
 *                   writable, munmap
 *   grow            mmap 2P, mremap -> 6P, mremap -> P, 3 allocations, 9P = 36,864 bytes, 3 frees, 2 reallocations, each temporary
 *                   munmap
 *   move_part       mmap 4P = a, mremap of its first 2P 3 allocations (4P, a -> 2P, 2P), 32,768 bytes, 1 reallocation, 3 frees: a is
 *                   to another place = b                temporary when it is cut, b when it is unmapped after the rest of a
 *   twin            mmap 2P shared, mremap of size 0    2 allocations, 16,384 bytes, 2 frees, the second is temporary
 *   keep_old        the same with MREMAP_DONTUNMAP      2 allocations, 16,384 bytes, 2 frees, the second is temporary
 *   grow_reserved   PROT_NONE P, mremap to 3P           nothing
 *   fail            mmap of 0 bytes, of no file; mremap 4 failed; 2P and P mapped and unmapped: 2 allocations, 12,288 bytes, 2 frees, both
 *                   of nothing, with no room; munmap of temporary
 *                   no page, of no bytes
 *   files           P of the program's file, 2P of a    2 allocations, 12,288 bytes, kept
 *                   memfd
 * allocations 1+1+1+3+2+2+3+3+3+2+2+2+2 = 27; bytes 12,288+5,000+8,192+110,592+36,864+16,384+32,768+36,864+32,768+16,384+16,384+12,288+12,288
 * = 349,064; frees 1+1+3+2+2+3+3+3+2+2+2 = 24; reallocations 2+1+1+2+1 = 7; temporary 1+1+3+2+1+2+3+2+1+1+2 = 19; failed 4.
 * peak: with_mmap64's 2P and cut_ends' 10P = 49,152 in 2 blocks. leaked: with_mmap64's and the files', 8,192+12,288 = 20,480 in 3 blocks.
 * The child unmaps what it inherited, which is nothing, and maps 2P: 1 allocation, 8,192 bytes, leaked. */
#define _GNU_SOURCE
#include "hazard.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define P 4096ul
#define RW (PROT_READ | PROT_WRITE)
#define ANY (MAP_PRIVATE | MAP_ANONYMOUS)

/* mmap, which must do. */
#define MAPPED(where, size, protection, flags, fd)                                                                     \
    ({                                                                                                                 \
        char *mapped = mmap(where, size, protection, flags, fd, 0);                                                    \
        EXPECT(mapped != MAP_FAILED, 10);                                                                              \
        mapped;                                                                                                        \
    })

static FRAME void anonymous_pair(void) {
    char *p = MAPPED(NULL, 3 * P, RW, ANY, -1);
    p[0] = 1;
    EXPECT(munmap(p, 3 * P) == 0, 11);
}
static FRAME void odd(void) {
    char *p = MAPPED(NULL, 5000, RW, ANY, -1);
    EXPECT(munmap(p, 5000) == 0, 12);
}
static FRAME char *with_mmap64(void) {
    char *p = mmap64(NULL, 2 * P, RW, ANY, -1, 0);
    EXPECT(p != MAP_FAILED, 13);
    return p;
}
static FRAME void cut_ends(void) {
    char *p = MAPPED(NULL, 10 * P, RW, ANY, -1);
    EXPECT(munmap(p, P) == 0 && munmap(p + 9 * P, P) == 0, 14);
    p[5 * P] = 1;
    EXPECT(munmap(p + P, 8 * P) == 0, 15);
}
static FRAME void cut_middle(void) {
    char *p = MAPPED(NULL, 5 * P, RW, ANY, -1);
    EXPECT(munmap(p + 2 * P, P) == 0 && munmap(p, 5 * P) == 0, 16);
}
static FRAME void span(void) {
    char *p = MAPPED(NULL, 4 * P, PROT_NONE, ANY, -1);
    MAPPED(p, 2 * P, RW, ANY | MAP_FIXED, -1);
    MAPPED(p + 2 * P, 2 * P, RW, ANY | MAP_FIXED, -1);
    EXPECT(munmap(p, 4 * P) == 0, 17);
}
static FRAME void replace(void) {
    char *a = MAPPED(NULL, 4 * P, RW, ANY, -1);
    MAPPED(a + P, 2 * P, RW, ANY | MAP_FIXED, -1);
    MAPPED(a, 4 * P, PROT_NONE, ANY | MAP_FIXED, -1);
    EXPECT(munmap(a, 4 * P) == 0, 18);
}
static FRAME void reserve(void) {
    char *p = MAPPED(NULL, 256 * P, PROT_NONE, ANY, -1);
    EXPECT(mprotect(p, P, RW) == 0 && munmap(p, 256 * P) == 0, 19);
}
static FRAME void grow(void) {
    char *p = MAPPED(NULL, 2 * P, RW, ANY, -1);
    p = mremap(p, 2 * P, 6 * P, MREMAP_MAYMOVE);
    EXPECT(p != MAP_FAILED, 20);
    EXPECT(mremap(p, 6 * P, P, 0) == p, 21);
    EXPECT(munmap(p, P) == 0, 22);
}
static FRAME void move_part(void) {
    char *a = MAPPED(NULL, 4 * P, RW, ANY, -1), *place = MAPPED(NULL, 2 * P, PROT_NONE, ANY, -1);
    char *b = mremap(a, 2 * P, 2 * P, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    EXPECT(b == place, 23);
    EXPECT(munmap(a + 2 * P, 2 * P) == 0 && munmap(b, 2 * P) == 0, 24);
}
static FRAME void twin(void) {
    char *p = MAPPED(NULL, 2 * P, RW, MAP_SHARED | MAP_ANONYMOUS, -1);
    char *q = mremap(p, 0, 2 * P, MREMAP_MAYMOVE);
    EXPECT(q != MAP_FAILED && munmap(p, 2 * P) == 0 && munmap(q, 2 * P) == 0, 25);
}
static FRAME void keep_old(void) {
    char *p = MAPPED(NULL, 2 * P, RW, ANY, -1);
    char *q = mremap(p, 2 * P, 2 * P, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL);
    EXPECT(q != MAP_FAILED && munmap(p, 2 * P) == 0 && munmap(q, 2 * P) == 0, 26);
}
static FRAME void grow_reserved(void) {
    char *p = MAPPED(NULL, P, PROT_NONE, ANY, -1);
    p = mremap(p, P, 3 * P, MREMAP_MAYMOVE);
    EXPECT(p != MAP_FAILED && munmap(p, 3 * P) == 0, 27);
}
static FRAME void fail(void) {
    errno = 0;
    EXPECT(mmap(NULL, 0, RW, ANY, -1, 0) == MAP_FAILED && errno == EINVAL, 28);
    EXPECT(mmap(NULL, P, RW, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF, 29);
    char *p = MAPPED(NULL, 2 * P, RW, ANY, -1);
    EXPECT(munmap(p + 1, P) == -1 && errno == EINVAL, 30);
    errno = 0;
    EXPECT(munmap(p, 0) == -1 && errno == EINVAL, 31);
    EXPECT(munmap(p, 2 * P) == 0, 32);
    EXPECT(mremap(p, 2 * P, 3 * P, 0) == MAP_FAILED && errno == EFAULT, 33);
    p = MAPPED(NULL, 2 * P, PROT_NONE, ANY, -1);
    MAPPED(p, P, RW, ANY | MAP_FIXED, -1);
    EXPECT(mremap(p, P, 2 * P, 0) == MAP_FAILED && errno == ENOMEM, 34);
    EXPECT(munmap(p, 2 * P) == 0, 35);
}
static FRAME void files(void) {
    int program = open("/proc/self/exe", O_RDONLY), memory = memfd_create("memory", 0);
    EXPECT(program >= 0 && memory >= 0 && ftruncate(memory, 2 * P) == 0, 36);
    KEEP(MAPPED(NULL, P, PROT_READ, MAP_PRIVATE, program));
    KEEP(MAPPED(NULL, 2 * P, RW, MAP_SHARED, memory));
}
static FRAME void in_child(char *inherited) {
    EXPECT(munmap(inherited, 2 * P) == 0, 37);
    KEEP(MAPPED(NULL, 2 * P, RW, ANY, -1));
}

int main(void) {
    anonymous_pair(), odd();
    char *kept = with_mmap64();
    cut_ends(), cut_middle(), span(), replace(), reserve(), grow(), move_part(), twin(), keep_old(), grow_reserved();
    fail(), files();
    pid_t child = fork();
    if (child == 0) {
        in_child(kept);
        _exit(0);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, 38);
    return 0;
}
