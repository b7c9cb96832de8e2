/* Hazard: functions of the malloc family that are looked up in libc itself, as ctypes, DllImport and JNA do it. They are libc's, behind
 * whatever was loaded in front of it: blocks that were seen are freed unseen, which looks like a leak.
 *
 *   freed_by_handle     malloc(60), five times freed by libc's free             5 allocations, 300 bytes, 5 frees, 5 temporary
 *   made_by_handle      libc's malloc(100) = p, five times freed by free        5 allocations, 500 bytes, 5 frees, 5 temporary
 *   others_by_handle    libc's calloc(7, 30) = a, realloc(a, 400) = b, posix_memalign 310 = c, aligned_alloc 512 = d
 *   by_version          dlvsym's malloc(70) = e
 * Functions that are looked up without a handle are the same ones as those that are called by name: EXPECT says so.
 * dlopen of a library that is there keeps 40 bytes in glibc 2.36, dlsym nothing.
 * allocations 1+5+5+4+1 = 16; bytes 40+300+500+210+400+310+512+70 = 2342; frees 5+5+1 = 11; reallocations 1; temporary 10, and a: 11.
 * peak, at the end: dlopen's, b, c, d, e = 40+400+310+512+70 = 1332 in 5 blocks, all leaked. */
#define _GNU_SOURCE
#include "hazard.h"
#include <dlfcn.h>

static void *libc;
static void *(*its_malloc)(size_t), *(*its_calloc)(size_t, size_t), *(*its_realloc)(void *, size_t), *(*its_aligned_alloc)(size_t, size_t);
static int (*its_posix_memalign)(void **, size_t, size_t);
static void (*its_free)(void *);

#define FIND(function) EXPECT((*(void **)&its_##function = dlsym(libc, #function)) != NULL, 10)

static FRAME void freed_by_handle(void) {
    for (int i = 0; i < 5; i++) { void *p = malloc(60); KEEP(p); its_free(p); }
    STAY();
}
static FRAME void made_by_handle(void) {
    for (int i = 0; i < 5; i++) { void *p = its_malloc(100); KEEP(p); free(p); }
    STAY();
}
static FRAME int others_by_handle(void) {
    void *a = its_calloc(7, 30), *b, *c = NULL, *d;
    KEEP(a);
    b = its_realloc(a, 400);
    KEEP(b);
    int failed = its_posix_memalign(&c, 64, 310);
    d = its_aligned_alloc(256, 512);
    KEEP(d);
    return b && !failed && d;
}
static FRAME void *by_version(void) {
    void *(*function)(size_t);
    *(void **)&function = dlvsym(libc, "malloc", "GLIBC_2.2.5");
    void *e = function ? function(70) : NULL;
    KEEP(e);
    return e;
}

int main(void) {
    libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    EXPECT(libc != NULL, 9);
    FIND(malloc); FIND(calloc); FIND(realloc); FIND(free); FIND(posix_memalign); FIND(aligned_alloc);
    EXPECT(dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc && dlsym(RTLD_NEXT, "malloc") != NULL, 11);
    EXPECT(dlsym(libc, "strlen") != NULL, 12);
    freed_by_handle();
    made_by_handle();
    EXPECT(others_by_handle(), 13);
    EXPECT(by_version() != NULL, 14);
    return 0;
}
