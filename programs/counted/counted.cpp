// The work of `src/main.rs` in C++, over the interface that is chosen when it is compiled: PLAIN (and WITH_OPERATORS where the allocator brings
// operators of its own), JEMALLOC, MIMALLOC, TCMALLOC, SNMALLOC, RPMALLOC. Each call is counted here as well, beside the path of those functions that say
// that they are under way (`At`); at the end it prints what was counted, as `src/tally.rs` does. The counting allocates nothing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#if defined JEMALLOC
#include <jemalloc/jemalloc.h>
#elif defined MIMALLOC
#include <mimalloc.h>
// Since version 3 a thread has the heap that every call could name before.
#if MI_MALLOC_VERSION >= 30000
#define MI_OF_HEAP(n) mi_theap_malloc(mi_theap_get_default(), n)
#else
#define MI_OF_HEAP(n) mi_heap_malloc(mi_heap_get_default(), n)
#endif
#elif defined TCMALLOC
#include <gperftools/tcmalloc.h>
#elif defined RPMALLOC
extern "C" {
#include <rpmalloc.h>
}
#elif defined SNMALLOC
extern "C" {
void *sn_malloc(size_t);
void *sn_calloc(size_t, size_t);
void *sn_realloc(void *, size_t);
void sn_free(void *);
void *sn_rust_alloc(size_t alignment, size_t bytes);
void *sn_rust_alloc_zeroed(size_t alignment, size_t bytes);
void *sn_rust_realloc(void *, size_t alignment, size_t before, size_t bytes);
void sn_rust_dealloc(void *, size_t alignment, size_t bytes);
}
#endif
// A clone has another name.
#define OWN __attribute__((noinline, noclone))

// ---- The tally.

struct Row { uint64_t path; uint64_t allocations, bytes, reallocations, temporary, freed_blocks, freed_bytes; };
struct Block { void *address; size_t bytes; Row *row; };
static const size_t PATHS = 128, BLOCKS = 1 << 16;
static Row rows[PATHS];
static Block blocks[BLOCKS];
static std::mutex lock;
static thread_local uint64_t path;
static thread_local void *last;
static const char *const NAMES[] = {"", "at_aligned", "at_deep", "at_grown", "at_handed", "at_kept", "at_kinds", "at_sized", "at_strings", "at_zeroed"};

static Row *row_of(uint64_t wanted) {
    for (Row &row : rows)
        if (row.path == wanted || !row.path) { row.path = wanted; return &row; }
    abort();
}

static Block *place_of(void *address) {
    for (size_t at = (uintptr_t)address >> 4, tries = 0; tries < BLOCKS; at++, tries++) {
        Block *block = &blocks[at % BLOCKS];
        if (block->address == address || !block->address) return block;
    }
    abort();
}

static void *given(void *block, size_t bytes) {
    if (!block) abort();
    last = block;
    if (path) {
        std::lock_guard<std::mutex> held(lock);
        Row *row = row_of(path);
        row->allocations++;
        row->bytes += bytes;
        *place_of(block) = {block, bytes, row};
    }
    return block;
}

static void taken(void *block) {
    std::lock_guard<std::mutex> held(lock);
    Block *at = place_of(block);
    if (!at->address) return;
    at->row->freed_blocks++;
    at->row->freed_bytes += at->bytes;
    at->row->temporary += last == block;
    at->address = nullptr;
    // Those that stand behind it for its sake.
    for (size_t next = at - blocks + 1;; next++) {
        Block moved = blocks[next % BLOCKS];
        if (!moved.address) return;
        blocks[next % BLOCKS].address = nullptr;
        *place_of(moved.address) = moved;
    }
}

static void *changed(void *block, size_t bytes) {
    given(block, bytes);
    std::lock_guard<std::mutex> held(lock);
    if (path) row_of(path)->reallocations++;
    return block;
}

struct At {
    uint64_t before = path;
    explicit At(int name) { path = path * 16 + name; }
    ~At() { path = before; }
};
enum { ALIGNED = 1, DEEP, GROWN, HANDED, KEPT, KINDS, SIZED, STRINGS, ZEROED };

static void print() {
    for (Row &row : rows) {
        if (!row.path) return;
        const char *separator = "";
        for (int shift = 60; shift >= 0; shift -= 4)
            if (int digit = (row.path >> shift) & 15) { printf("%s%s", separator, NAMES[digit]); separator = "/"; }
        unsigned long all[] = {row.allocations, row.bytes, row.reallocations, row.temporary, row.allocations - row.freed_blocks, row.bytes - row.freed_bytes};
        for (unsigned long value : all) printf(" %lu", value);
        puts("");
    }
}

// ---- The interface: what gives, what changes, what takes back.

#if defined JEMALLOC
static void *of_bytes(size_t n) { return given(mallocx(n, 0), n); }
static void *of_zeros(size_t n, size_t m) { return given(mallocx(n * m, MALLOCX_ZERO), n * m); }
static void *of_aligned(size_t a, size_t n) { return given(mallocx(n, MALLOCX_ALIGN(a)), n); }
static void *to_bytes(void *p, size_t n) { if (!p) return of_bytes(n); taken(p); return changed(rallocx(p, n, 0), n); }
static void back(void *p) { taken(p); dallocx(p, 0); }
static void back_sized(void *p, size_t n, size_t a) { taken(p); sdallocx(p, n, a ? MALLOCX_ALIGN(a) : 0); }
#elif defined MIMALLOC
static void *of_bytes(size_t n) { return given(mi_malloc(n), n); }
static void *of_zeros(size_t n, size_t m) { return given(mi_calloc(n, m), n * m); }
static void *of_aligned(size_t a, size_t n) { return given(mi_malloc_aligned(n, a), n); }
static void *to_bytes(void *p, size_t n) { if (!p) return of_bytes(n); taken(p); return changed(mi_realloc(p, n), n); }
static void back(void *p) { taken(p); mi_free(p); }
static void back_sized(void *p, size_t n, size_t a) { taken(p); if (a) mi_free_size_aligned(p, n, a); else mi_free_size(p, n); }
#elif defined TCMALLOC
static void *of_bytes(size_t n) { return given(tc_malloc(n), n); }
static void *of_zeros(size_t n, size_t m) { return given(tc_calloc(n, m), n * m); }
static void *of_aligned(size_t a, size_t n) { return given(tc_memalign(a, n), n); }
static void *to_bytes(void *p, size_t n) { if (!p) return of_bytes(n); taken(p); return changed(tc_realloc(p, n), n); }
static void back(void *p) { taken(p); tc_free(p); }
static void back_sized(void *p, size_t n, size_t) { taken(p); tc_free_sized(p, n); }
#elif defined RPMALLOC
static void *of_bytes(size_t n) { return given(rpmalloc(n), n); }
static void *of_zeros(size_t n, size_t m) { return given(rpcalloc(n, m), n * m); }
static void *of_aligned(size_t a, size_t n) { return given(rpaligned_alloc(a, n), n); }
static void *to_bytes(void *p, size_t n) { if (!p) return of_bytes(n); taken(p); return changed(rprealloc(p, n), n); }
static void back(void *p) { taken(p); rpfree(p); }
static void back_sized(void *p, size_t, size_t) { back(p); }
#elif defined SNMALLOC
static void *of_bytes(size_t n) { return given(sn_malloc(n), n); }
static void *of_zeros(size_t n, size_t m) { return given(sn_calloc(n, m), n * m); }
static void *of_aligned(size_t a, size_t n) { return given(sn_rust_alloc(a, n), n); }
static void *to_bytes(void *p, size_t n) { if (!p) return of_bytes(n); taken(p); return changed(sn_realloc(p, n), n); }
static void back(void *p) { taken(p); sn_free(p); }
static void back_sized(void *p, size_t n, size_t a) { taken(p); sn_rust_dealloc(p, a ? a : 1, n); }
#else
static void *of_bytes(size_t n) { return given(malloc(n), n); }
static void *of_zeros(size_t n, size_t m) { return given(calloc(n, m), n * m); }
static void *of_aligned(size_t a, size_t n) { return given(aligned_alloc(a, n), n); }
static void *to_bytes(void *p, size_t n) { if (p) taken(p); void *q = realloc(p, n); return p ? changed(q, n) : given(q, n); }
static void back(void *p) { taken(p); free(p); }
#if defined WITH_OPERATORS
static void back_sized(void *p, size_t n, size_t a) { taken(p); if (a) ::operator delete(p, n, std::align_val_t(a)); else ::operator delete(p, n); }
#else
static void back_sized(void *p, size_t, size_t) { back(p); }
#endif
#endif

// ---- The work.

OWN static size_t at_strings(size_t count) {
    At here(STRINGS);
    size_t all = 0;
    for (size_t index = 0; index < count; index++) {
        char *text = (char *)of_bytes(index % 70 + 10);
        all += snprintf(text, 10, "t %zu", index % 10000);
        back(text);
    }
    return all;
}

OWN static uint64_t *at_grown(size_t count) {
    At here(GROWN);
    uint64_t *list = nullptr;
    size_t room = 0;
    for (size_t index = 0; index < count; index++) {
        if (index == room) { room = room ? 2 * room : 4; list = (uint64_t *)to_bytes(list, room * sizeof *list); }
        list[index] = index;
    }
    return (uint64_t *)to_bytes(list, count * sizeof *list);
}

OWN static void at_zeroed(size_t count) {
    At here(ZEROED);
    for (size_t index = 1; index <= count; index++) {
        char *zeros = (char *)of_zeros(index, 37);
        if (zeros[index * 37 - 1]) abort();
        back_sized(zeros, index * 37, 0);
    }
}

OWN static void at_aligned(size_t count) {
    At here(ALIGNED);
    void *kept[200];
    for (size_t index = 0; index < count; index++) {
        size_t alignment = 16u << index % 9;
        kept[index] = of_aligned(alignment, alignment * (index % 3 + 1));
#if !defined MIMALLOC
        // Debian's 2.0.9 gives 512 bytes at 256 where they are not aligned.
        if ((uintptr_t)kept[index] % alignment) abort();
#endif
    }
    for (size_t index = 0; index < count; index++) {
        size_t alignment = 16u << index % 9;
        if (index % 2) back(kept[index]); else back_sized(kept[index], alignment * (index % 3 + 1), alignment);
    }
}

OWN static void *at_deep(size_t depth) {
    At here(DEEP);
    void *own = of_bytes(depth + 1);
    if (depth) back(at_deep(depth - 1));
    memset(own, 1, depth + 1);
    return own;
}

OWN static void at_kept(size_t count) {
    At here(KEPT);
    for (size_t index = 0; index < count; index++) memset(of_bytes(index + 1), 1, index + 1);
}

OWN static void at_sized(size_t count) {
    At here(SIZED);
    for (size_t index = 1; index <= count; index++) {
        void *first = of_bytes(index * 9), *second = of_bytes(index * 5);
        first = to_bytes(first, index * 90);
        back_sized(second, index * 5, 0);
        back_sized(first, index * 90, 0);
    }
}

/// Blocks for another thread to free.
OWN static void at_handed(void **places, size_t count) {
    At here(HANDED);
    for (size_t index = 0; index < count; index++) places[index] = of_bytes(40);
}

/// What only this interface has.
OWN static void at_kinds(size_t count) {
    At here(KINDS);
    for (size_t index = 1; index <= count; index++) {
#if defined JEMALLOC
        void *p = of_bytes(100 * index);
        size_t room = sallocx(p, 0);
        // Nothing changes place: the block is given again.
        taken(p);
        if (xallocx(p, room, 0, 0) < room) abort();
        changed(p, room);
        back(p);
#elif defined MIMALLOC
        void *p = given(mi_zalloc(index), index);
        taken(p); p = changed(mi_rezalloc(p, index * 7), index * 7);
        taken(p); p = changed(mi_recalloc(p, index, 11), index * 11);
        taken(p); p = changed(mi_realloc_aligned(p, index * 40, 128), index * 40);
        void *q = given(mi_new(index), index), *r = given(mi_mallocn(index, 3), index * 3), *s = nullptr;
        if (mi_posix_memalign(&s, 256, index)) abort();
        given(s, index);
        void *t = given(MI_OF_HEAP(index * 2), index * 2);
        back(q); back(r); back(s); back(t); back_sized(p, index * 40, 128);
#elif defined TCMALLOC
        void *p = given(tc_new(index), index), *q = given(tc_newarray(index * 2), index * 2), *r = nullptr;
        if (tc_posix_memalign(&r, 64, index)) abort();
        given(r, index);
        taken(p); tc_delete_sized(p, index);
        taken(q); tc_deletearray(q);
        taken(r); tc_free(r);
        void *s = given(tc_new_nothrow(index, std::nothrow), index), *t = given(tc_valloc(index), index);
        taken(s); tc_delete(s);
        taken(t); tc_cfree(t);
#elif defined RPMALLOC
        void *p = given(rpaligned_calloc(64, index, 3), index * 3), *q = given(rpmemalign(32, index), index), *r = nullptr;
        if (rpposix_memalign(&r, 128, index)) abort();
        given(r, index);
        taken(p); p = changed(rpaligned_realloc(p, 64, index * 30, index * 3, 0), index * 30);
        back(p); back(q); back(r);
#elif defined SNMALLOC
        void *p = given(sn_rust_alloc_zeroed(8, index), index);
        taken(p); p = changed(sn_rust_realloc(p, 8, index, index * 50), index * 50);
        back_sized(p, index * 50, 8);
#else
        void *p = nullptr;
        if (posix_memalign(&p, 64, index)) abort();
        given(p, index);
        back(p);
#if defined WITH_OPERATORS
        p = given(::operator new(index), index);
        void *q = given(::operator new[](index * 2), index * 2), *r = given(::operator new(index, std::nothrow), index);
        void *s = given(::operator new(index * 3, std::align_val_t(64)), index * 3);
        taken(p); ::operator delete(p);
        taken(q); ::operator delete[](q);
        taken(r); ::operator delete(r, std::nothrow);
        taken(s); ::operator delete(s, std::align_val_t(64));
#endif
#endif
    }
}

static void all_of_it(size_t scale) {
    at_aligned(scale);
    uint64_t *grown = at_grown(scale * 30);
    back(at_deep(9));
    at_sized(scale);
    at_kept(scale / 4);
    at_strings(scale * 5);
    at_zeroed(scale);
    at_kinds(scale / 2);
    back(grown);
}

int main() {
#if defined RPMALLOC
    rpmalloc_initialize();
#endif
    all_of_it(200);
    static void *handed[4][100];
    std::thread threads[4];
    for (int index = 0; index < 4; index++)
        threads[index] = std::thread([index] {
#if defined RPMALLOC
            rpmalloc_thread_initialize();
#endif
            all_of_it(50 + index);
            at_handed(handed[index], 100);
        });
    for (std::thread &thread : threads) thread.join();
    for (auto &places : handed)
        for (void *block : places) back(block);
    print();
    fflush(stdout);
    _Exit(0);
}
