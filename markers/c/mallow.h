/* mallow.h: region markers for allocation tests in C and C++.
 *
 * A region is a stretch of a program whose allocations, leaks and file descriptors `mallow check` counts. Include
 * this one file and mark the stretch. There is no library to link: the four functions that do the work are weak
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
 * Needs C89 or newer or any C++, gcc or clang. The markers are seen in position-independent programs, which is
 * what compilers build by default, in shared libraries, and with GNU ld in others too. Other linkers than GNU ld
 * need `-Wl,-z,dynamic-undefined-weak` for a program built with `-no-pie`. The marks of a static program are never seen,
 * so `mallow check` counts its whole process alone (mode = "process").
 *
 * Licence: MIT OR Apache-2.0.
 */
#ifndef MALLOW_H
#define MALLOW_H

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

/* From here on each name is a macro as well, which compares with null before it calls. */
#define mallow_region_begin(name) ((mallow_region_begin) ? (mallow_region_begin)(name) : (void)0)
#define mallow_region_end(name) ((mallow_region_end) ? (mallow_region_end)(name) : (void)0)
#define mallow_ops(ops_per_run) ((mallow_ops) ? (mallow_ops)(ops_per_run) : (void)0)
#define mallow_quiesce() ((mallow_quiesce) ? (mallow_quiesce)() : (void)0)

/* 1 while mallow watches this program, else 0. */
#define mallow_is_watching() ((mallow_region_begin) ? 1 : 0)

/* Keeps `pointer` and what it points to from the optimiser: without it a compiler may remove a malloc whose block
 * is only freed again, and the test would count nothing. Costs no instruction. */
#define mallow_keep(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

/* The number in the environment variable `variable`, or `otherwise` if it is unset or no number below one
 * million. For `mallow_measure`. */
static __inline__ __attribute__((unused)) unsigned long mallow_count(const char *variable, unsigned long otherwise) {
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
    unsigned long left = mallow_count("MALLOW_WARMUP", 0) + mallow_count("MALLOW_RUNS", 1);
    for (; left; left--) {
        mallow_region_begin(name);
        function(context);
        mallow_region_end(name);
    }
}

/* How many operations a run should do: the number in MALLOW_OPS, which mallow sets when it derives the figure per
 * operation from runs of different length (mode "slope"), else `usual`. */
static __inline__ __attribute__((unused)) unsigned long mallow_ops_wanted(unsigned long usual) {
    return mallow_count("MALLOW_OPS", usual);
}

#ifdef __cplusplus
}
#endif
#endif
