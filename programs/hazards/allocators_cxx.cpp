// Hazard: another allocator's operator new.
// jemalloc, tcmalloc and mimalloc define operator new and delete themselves and do not go through malloc: who hooks
// only the C functions sees nothing of a C++ program's memory, or sees frees without allocations.
//
// The program's own functions give the same figures under each allocator (aligned sizes are multiples of the
// alignment):
//   plain_new    100 x operator new(48), each deleted at once with its size: 4,800 bytes, temporary 100
//   array_new    50 x operator new[](60), each deleted at once: 3,000 bytes, temporary 50
//   aligned_new  20 x operator new(256, 64), each deleted at once: 5,120 bytes, temporary 20
//   nothrow_new  10 x nothrow operator new(72), each deleted at once: 720 bytes, temporary 10
//   kept_new     5 x operator new(31), never deleted: 155 bytes leaked in 5 blocks
//   vector_grow  std::vector<long> with push_back to 1,000: 1, 2, 4 … 1,024 elements: 11 allocations, 8 * 2,047 =
//                16,376 bytes, temporary 1 (only the last one is freed with nothing allocated after it)
#include "hazard.h"
#include <new>
#include <vector>

static const std::align_val_t line{64};
static FRAME void *plain_new() { void *p = ::operator new(48); KEEP(p); return p; }
static FRAME void *array_new() { void *p = ::operator new[](60); KEEP(p); return p; }
static FRAME void *aligned_new() { void *p = ::operator new(256, line); KEEP(p); return p; }
static FRAME void *nothrow_new() { void *p = ::operator new(72, std::nothrow); KEEP(p); return p; }
static FRAME void kept_new() { void *p = ::operator new(31); KEEP(p); STAY(); }
static FRAME void vector_grow() {
    std::vector<long> numbers;
    for (long i = 0; i < 1000; i++) {
        numbers.push_back(i);
        KEEP(numbers.data());
    }
}

int main() {
    for (int i = 0; i < 100; i++) ::operator delete(plain_new(), std::size_t(48));
    for (int i = 0; i < 50; i++) ::operator delete[](array_new());
    for (int i = 0; i < 20; i++) ::operator delete(aligned_new(), line);
    for (int i = 0; i < 10; i++) ::operator delete(nothrow_new(), std::nothrow);
    for (int i = 0; i < 5; i++) kept_new();
    vector_grow();
    return 0;
}
