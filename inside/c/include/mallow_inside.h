/* mallow_inside.h: heap profiles and exact counts from inside a program in C or C++.
 *
 * For programs that cannot be started under `mallow record`: a service that somebody else starts, a test, a plug-in's host.
 *
 *     #include "mallow_inside.h"
 *
 *     int main(void) {
 *         mallow_profile_begin("app.mallow");
 *         run();
 *         mallow_profile_end();             // mallow report app.mallow
 *         return 0;
 *     }
 *
 *     cc -g app.c -I inside/c/include target/release/libmallow_inside.a -o app
 *
 * The library stands in front of malloc, calloc, realloc, reallocarray, free, posix_memalign, aligned_alloc, memalign, valloc, pvalloc and of all
 * forms of operator new and delete, for the whole process, and passes every call on to the allocator that the program would have without it.
 * It belongs into the executable, in front of other libraries, and not into a shared library. While nothing is recorded a call costs one compare.
 * Under `mallow record` nothing has to be changed: the program is recorded from outside, and what is begun here stands back and says so.
 *
 * With MALLOW_INSIDE_OFF defined the functions are empty, and the library is not needed.
 *
 * Every function may be called from any thread. Needs Linux on x86-64, a dynamic executable, C99 or C++98 or newer.
 *
 * Licence: MIT OR Apache-2.0.
 */
#ifndef MALLOW_INSIDE_H
#define MALLOW_INSIDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#if !defined(MALLOW_INSIDE_OFF) && (defined(__EXCEPTIONS) || defined(__cpp_exceptions))
#include <new>
/* With -static-libstdc++ the library's operators are the program's only ones. Where `operator new` fails, they throw by this. */
extern "C" __attribute__((weak, used)) void mallow_inside_throw_bad_alloc(void) { throw std::bad_alloc(); }
#endif

extern "C" {
#endif

/* Sums of what was allocated. The rules are those of `mallow record`. */
struct mallow_stats {
    uint64_t allocations;   /* successful calls that allocate */
    uint64_t bytes;         /* what they asked for */
    uint64_t reallocations; /* those of them that were realloc of a live block */
    uint64_t temporary;     /* blocks that their thread freed before it allocated again */
    uint64_t peak_bytes;    /* the most bytes that lived at a time */
    uint64_t peak_blocks;   /* the blocks that lived then */
    uint64_t live_bytes;    /* bytes that live now */
    uint64_t live_blocks;   /* blocks that live now */
};

/* A part of the program whose allocations are counted. */
struct mallow_scope;

#ifndef MALLOW_INSIDE_OFF

/* Records every thread of the program from here on, into a trace that `mallow report` reads. An existing file is overwritten. One profile at a time.
 *
 * Gives 0. What stands in the way is said on stderr, gives -1, and the program goes on without a profile. */
int mallow_profile_begin(const char *path);

/* The same, into a file for DHAT's viewer, dh_view. */
int mallow_profile_begin_dhat(const char *path);

/* The sums since the begin, over all threads. Gives 0; -1 when no profile of this process is under way, and then `stats` is as it was. */
int mallow_profile_stats(struct mallow_stats *stats);

/* Ends the profile; the file is complete. `exit`, and `return` from main, do so too. Gives 0; -1 when there was none. */
int mallow_profile_end(void);

/* Counts what this thread allocates from here on; null when nothing can be counted, which is said on stderr. Scopes may lie within a profile, within
 * each other, or stand alone. */
struct mallow_scope *mallow_scope_begin(void);

/* What was allocated since the begin, by its thread and for it. Gives 0; -1 when it is not counted any more, and then `stats` is as it was. */
int mallow_scope_stats(const struct mallow_scope *scope, struct mallow_stats *stats);

/* Whether a limit holds: a member of struct mallow_stats, one of <= < == >= >, and a number, for bytes with a unit: "allocations<=45", "bytes<4KiB".
 *
 * Gives 0. A limit that does not hold is said on stderr, with the stacks that did it, and gives -1; so does one that cannot be read, and a scope that
 * is not counted any more. Once stacks were told, the scope counts no more. */
int mallow_scope_check(const struct mallow_scope *scope, const char *limit);

/* Calls `work(context)` on a thread that is not the scope's own, and counts what it allocates for the scope. */
void mallow_scope_run(const struct mallow_scope *scope, void (*work)(void *context), void *context);

/* Ends it, on any thread. A null scope is nothing. */
void mallow_scope_end(struct mallow_scope *scope);

#else

static inline int mallow_profile_begin(const char *path) { (void)path; return -1; }
static inline int mallow_profile_begin_dhat(const char *path) { (void)path; return -1; }
static inline int mallow_profile_stats(struct mallow_stats *stats) { (void)stats; return -1; }
static inline int mallow_profile_end(void) { return -1; }
static inline struct mallow_scope *mallow_scope_begin(void) { return NULL; }
static inline int mallow_scope_stats(const struct mallow_scope *scope, struct mallow_stats *stats) {
    (void)scope;
    (void)stats;
    return -1;
}
static inline int mallow_scope_check(const struct mallow_scope *scope, const char *limit) {
    (void)scope;
    (void)limit;
    return -1;
}
static inline void mallow_scope_run(const struct mallow_scope *scope, void (*work)(void *context), void *context) {
    (void)scope;
    work(context);
}
static inline void mallow_scope_end(struct mallow_scope *scope) { (void)scope; }

#endif

#ifdef __cplusplus
}
#endif

#endif
