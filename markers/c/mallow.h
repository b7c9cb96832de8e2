/* mallow.h: region markers for allocation tests in C and C++.
 *
 * A region is a stretch of a program whose allocations, leaks and file descriptors `mallow check` counts. Include
 * this one file and mark the stretch. There is no library to link: the functions that do the work are weak
 * symbols which exist only while mallow runs the program. Without mallow each marker costs one compare with null
 * and does nothing, so it may stay in a program that ships.
 *
 *     #include "mallow.h"
 *
 *     static void encode_all(void *context) {
 *         int i;
 *         for (i = 0; i < 1000; i++) encode(context);
 *     }
 *
 *     int main(void) {
 *         struct message message = ...;
 *         mallow_ops(1000);
 *         mallow_measure("encode", encode_all, &message);
 *         return 0;
 *     }
 *
 * A test of another framework counts what a function allocates, and asserts on it: `mallow_count` below.
 *
 * Needs C89 or newer or any C++, gcc or clang. The markers are seen in position-independent programs, which is
 * what compilers build by default, in shared libraries, and with GNU ld in others too. Other linkers than GNU ld
 * need `-Wl,-z,dynamic-undefined-weak` for a program built with `-no-pie`. The marks of a static program are never seen,
 * so `mallow check` counts its whole process alone (mode = "process").
 *
 * Licence: MIT OR Apache-2.0.
 */
#ifndef MALLOW_H
#define MALLOW_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The address is fetched through the GOT: a linker would otherwise settle a weak symbol that no library defines
 * to null once and for all, and mallow could not bring it at run time. */
#if defined(__GNUC__) && !defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
#define MALLOW_WEAK __attribute__((weak, noplt))
#else
#define MALLOW_WEAK __attribute__((weak))
#endif

/* Begins one run of the region `name`, which is the name of the test or the part behind its dot.
 *
 * A block belongs to the run in which it was born, whichever thread allocates it. `name` is read before the call
 * returns; up to 127 bytes of it count. Regions of different names may follow each other or be nested; beginning
 * a region that has begun already is a mistake, which `mallow check` reports.
 *
 * `name` is evaluated once. Allocates nothing, changes no errno, may be called from any thread. */
MALLOW_WEAK extern void mallow_region_begin(const char *name);

/* Ends the run of the region `name` that began last.
 *
 * First waits until blocks that other threads are still freeing are gone, milliseconds as a rule; what then is
 * left of the run is reported as remaining. Join or stop your own threads before, if you can. */
MALLOW_WEAK extern void mallow_region_end(const char *name);

/* Says how many operations one run consists of, so that figures are printed per operation as well. Call it
 * before the region, or inside. `mallow.toml` can say the same, and wins. */
MALLOW_WEAK extern void mallow_ops(uint64_t ops_per_run);

/* Waits now, in the middle of a region, until the blocks and descriptors that the region holds stand still.
 * For programs that hand work to threads which they cannot join. `mallow_region_end` does it by itself. */
MALLOW_WEAK extern void mallow_quiesce(void);

/* What `mallow_count` has counted. More members may follow. */
struct mallow_counts {
    uint64_t allocations;      /* successful calls that allocate */
    uint64_t bytes;            /* what they asked for */
    uint64_t reallocations;    /* those of them that were realloc of a live block */
    uint64_t temporary;        /* blocks that the thread freed before it allocated again */
    uint64_t peak_bytes;       /* the most bytes of these blocks that lived at a time */
    uint64_t remaining_blocks; /* those of the blocks that live at the end */
    uint64_t remaining_bytes;  /* their bytes */
};

/* Counts what the calling thread allocates from here on, until `mallow_count_end`. Gives 0; -1 when nothing is counted. */
MALLOW_WEAK extern int mallow_count_begin(void);

/* Ends the count that this thread began last: writes as many values, in the order of `struct mallow_counts`, as there is room
 * for and says how many those are. 0 when nothing was counted, or not everything. */
MALLOW_WEAK extern size_t mallow_count_end(uint64_t *values, size_t value_count);

/* From here on each name is a macro as well, which compares with null before it calls. */
#define mallow_region_begin(name) ((mallow_region_begin) ? (mallow_region_begin)(name) : (void)0)
#define mallow_region_end(name) ((mallow_region_end) ? (mallow_region_end)(name) : (void)0)
#define mallow_ops(ops_per_run) ((mallow_ops) ? (mallow_ops)(ops_per_run) : (void)0)
#define mallow_quiesce() ((mallow_quiesce) ? (mallow_quiesce)() : (void)0)

#define mallow_count_begin() ((mallow_count_begin) ? (mallow_count_begin)() : -1)
#define mallow_count_end(values, value_count) ((mallow_count_end) ? (mallow_count_end)(values, value_count) : 0)

/* 1 while mallow watches this program, else 0. */
#define mallow_is_watching() ((mallow_region_begin) ? 1 : 0)

/* Keeps `pointer` and what it points to from the optimiser: without it a compiler may remove a malloc whose block
 * is only freed again, and the test would count nothing. Costs no instruction. */
#define mallow_keep(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

/* Calls `function(context)` and counts what the calling thread allocates meanwhile: exactly, whatever other threads do. A block
 * that another thread frees is gone too; what other threads allocate is not counted. Counts may lie within each other.
 *
 * Gives 0. Gives -1 when it was not counted, and then `counts` is as it was: the program does not run under `mallow record`, `check` or
 * `soak`, is static, or some of its calls were not recorded. `mallow stat` only adds up and counts no stretches. */
static __inline__ __attribute__((unused)) int mallow_count(void (*function)(void *), void *context,
                                                           struct mallow_counts *counts) {
    uint64_t values[7];
    size_t value_count;
    (void)mallow_count_begin();
    function(context);
    value_count = mallow_count_end(values, 7);
    if (value_count < 7) return -1;
    counts->allocations = values[0];
    counts->bytes = values[1];
    counts->reallocations = values[2];
    counts->temporary = values[3];
    counts->peak_bytes = values[4];
    counts->remaining_blocks = values[5];
    counts->remaining_bytes = values[6];
    return 0;
}

/* The number in the environment variable `variable`, or `otherwise` if it is unset or no number below one
 * million. For `mallow_measure`. */
static __inline__ __attribute__((unused)) unsigned long mallow_setting(const char *variable, unsigned long otherwise) {
    const char *at = getenv(variable);
    unsigned long count = 0;
    if (!at || !*at) return otherwise;
    for (; *at; at++) {
        if (*at < '0' || *at > '9' || count >= 100000) return otherwise;
        count = count * 10 + (unsigned long)(*at - '0');
    }
    return count;
}

/* Runs `function(context)` as often as mallow asks for, each time as one run of the region `name`: MALLOW_WARMUP
 * times for warming up and MALLOW_RUNS times for counting. Without these variables, as without mallow, once.
 *
 * Every run has to do the same work. What all of them share is prepared before the call. */
static __inline__ __attribute__((unused)) void mallow_measure(const char *name, void (*function)(void *),
                                                              void *context) {
    unsigned long left = mallow_setting("MALLOW_WARMUP", 0) + mallow_setting("MALLOW_RUNS", 1);
    for (; left; left--) {
        mallow_region_begin(name);
        function(context);
        mallow_region_end(name);
    }
}

/* How many operations a run should do: the number in MALLOW_OPS, which mallow sets when it derives the figure per
 * operation from runs of different length (mode "slope"), else `usual`. */
static __inline__ __attribute__((unused)) unsigned long mallow_ops_wanted(unsigned long usual) {
    return mallow_setting("MALLOW_OPS", usual);
}

#ifdef __cplusplus
}
#endif
#endif
