/* mallow_benchmark.h: what a benchmark of Google Benchmark allocates, counted by mallow.
 *
 *     #include <benchmark/benchmark.h>
 *     #include "mallow_benchmark.h"
 *
 *     static void encode(benchmark::State &state) { for (auto _ : state) { ... } }
 *     BENCHMARK(encode);
 *
 *     int main(int count, char **words) {
 *         mallow::register_memory_manager();
 *         benchmark::Initialize(&count, words);
 *         benchmark::RunSpecifiedBenchmarks();
 *     }
 *
 *     mallow record --summary-only -o bench.mallow -- ./bench --benchmark_format=json
 *
 * The library runs each benchmark once more for its memory, up to 16 iterations on one thread, and this counts what that thread allocates:
 * allocations, the most bytes that lived at a time, all bytes, and the bytes that were left. A few allocations are the library's own; an empty
 * benchmark shows how many. What other threads allocate is not counted.
 *
 * Without mallow no memory manager is registered, which is said on stderr, and the figures are missing rather than 0.
 *
 * Needs C++11 and Google Benchmark 1.5 or newer. Licence: MIT OR Apache-2.0.
 */
#ifndef MALLOW_BENCHMARK_H
#define MALLOW_BENCHMARK_H

#include "mallow.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <limits>

namespace mallow {

/* Counts one run of a benchmark. */
class MemoryManager : public benchmark::MemoryManager {
public:
    void Start() override { (void)mallow_count_begin(); }

    /* The library calls this one up to version 1.7, and the other one since. */
    void Stop(Result *result) {
        uint64_t values[7];
        if (mallow_count_end(values, 7) == 7) {
            result->num_allocs = (int64_t)values[0];
            result->max_bytes_used = (int64_t)values[4];
            set_totals(*result, (int64_t)values[1], (int64_t)values[6], 0);
            return;
        }
        std::fputs("mallow: this benchmark was not counted, because not every call was recorded. Run it again.\n", stderr);
        /* No figure that could be one. */
        result->num_allocs = result->max_bytes_used = (std::numeric_limits<int64_t>::min)();
    }

    void Stop(Result &result) { Stop(&result); }

private:
    /* Versions before 1.6 have only the first two figures. */
    template <class R>
    static auto set_totals(R &result, int64_t bytes, int64_t remaining, int) -> decltype(result.net_heap_growth, void()) {
        result.total_allocated_bytes = bytes;
        result.net_heap_growth = remaining;
    }
    template <class R>
    static void set_totals(R &, int64_t, int64_t, long) {}
};

/* Has the library report what benchmarks allocate. Gives whether it will: not without mallow, which is said on stderr. */
inline bool register_memory_manager() {
    static MemoryManager manager;
    uint64_t nothing[7];
    (void)mallow_count_begin();
    if (mallow_count_end(nothing, 7) != 7) {
        std::fputs("mallow: allocations are not counted, because the program does not run under `mallow record`. Run it with\n"
                   "`mallow record --summary-only -o bench.mallow -- PROGRAM`.\n",
                   stderr);
        return false;
    }
    benchmark::RegisterMemoryManager(&manager);
    return true;
}

} /* namespace mallow */

#endif
