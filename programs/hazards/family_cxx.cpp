// Hazard: every operator new and operator delete.
// An allocator may implement them without calling malloc, and even where they call malloc their frames are plumbing:
// the site is the function that asked. Sized and aligned variants are the ones that hooks forget.
//
// Every size of an aligned variant is a multiple of its alignment, because libstdc++ may round up otherwise.
//   new_plain 10, new_array 20, new_nothrow 30, new_array_nothrow 40, new_aligned 128, new_array_aligned 192,
//   new_aligned_nothrow 256, new_array_aligned_nothrow 320, new_with_cookie: 3 objects of 8 bytes + 8 bytes of cookie
//     = 32
// Own allocations 9, bytes 10+20+30+40+128+192+256+320+32 = 1028. Deleted are all but new_array (20) and new_aligned
// (128). libstdc++ itself allocates 72,704 bytes (its emergency pool for exceptions) before main and keeps them: the
// program would do so without a profiler too, so they are in the totals: allocations 10, bytes 73,732, frees 7, leaked
// 148 + 72,704. The peak is the moment when all are live. The first delete frees the block allocated last (the cookie
// array): temporary 1.
#include "hazard.h"
#include <new>

static const std::align_val_t line{64};
static FRAME void *new_plain() { void *p = ::operator new(10); KEEP(p); return p; }
static FRAME void *new_array() { void *p = ::operator new[](20); KEEP(p); return p; }
static FRAME void *new_nothrow() { void *p = ::operator new(30, std::nothrow); KEEP(p); return p; }
static FRAME void *new_array_nothrow() { void *p = ::operator new[](40, std::nothrow); KEEP(p); return p; }
static FRAME void *new_aligned() { void *p = ::operator new(128, line); KEEP(p); return p; }
static FRAME void *new_array_aligned() { void *p = ::operator new[](192, line); KEEP(p); return p; }
static FRAME void *new_aligned_nothrow() { void *p = ::operator new(256, line, std::nothrow); KEEP(p); return p; }
static FRAME void *new_array_aligned_nothrow() { void *p = ::operator new[](320, line, std::nothrow); KEEP(p); return p; }

static int destroyed;
struct Tracked {
    long value = 1;
    ~Tracked() { destroyed += 1; }
};
static FRAME Tracked *new_with_cookie() {
    Tracked *p = new Tracked[3];
    KEEP(p);
    return p;
}

static FRAME void delete_all_but_two(void *plain, void *nothrow, void *array_nothrow, void *array_aligned,
                                     void *aligned_nothrow, void *array_aligned_nothrow, Tracked *cookie) {
    delete[] cookie;
    ::operator delete(plain, std::size_t(10));
    ::operator delete(nothrow, std::nothrow);
    ::operator delete[](array_nothrow);
    ::operator delete[](array_aligned, line);
    ::operator delete(aligned_nothrow, std::size_t(256), line);
    ::operator delete[](array_aligned_nothrow, std::size_t(320), line);
    STAY();
}

int main() {
    void *plain = new_plain(), *array = new_array(), *nothrow = new_nothrow(), *array_nothrow = new_array_nothrow();
    void *aligned = new_aligned(), *array_aligned = new_array_aligned();
    void *aligned_nothrow = new_aligned_nothrow(), *array_aligned_nothrow = new_array_aligned_nothrow();
    Tracked *cookie = new_with_cookie();
    KEEP(array);
    KEEP(aligned);
    delete_all_but_two(plain, nothrow, array_nothrow, array_aligned, aligned_nothrow, array_aligned_nothrow, cookie);
    return destroyed == 3 ? 0 : 10;
}
