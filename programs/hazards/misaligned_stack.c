/* Hazard: calls with a stack pointer that is 8 bytes off.
 * Code made by hand and old compilers do that; the C library's allocator does not notice, and an allocator's wrapper that keeps
 * vectors on the stack dies of it.
 *
 * 10 times: 100 bytes made, made larger to 200, and freed, each with the stack off by 8.
 *   crooked  20 allocations (10 of them by realloc), 3,000 bytes; frees 20; peak 200 in 1 block, leaked 0
 * temporary 20: each is freed or moved before the next is made. */
#include "hazard.h"

/* Calls a function of two arguments with the stack pointer off by 8. */
void *crooked(void *function, size_t first, size_t second);
__asm__(".text\n .type crooked, @function\n"
        "crooked: .cfi_startproc\n"
        " mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n"
        " call *%rax\n ret\n .cfi_endproc\n .size crooked, .-crooked\n");

static FRAME void *straight(void *function, size_t first, size_t second) {
    void *answer = crooked(function, first, second);
    STAY();
    return answer;
}

int main(void) {
    for (volatile int i = 0; i < 10; i = i + 1) {
        void *p = straight((void *)malloc, 100, 0);
        p = straight((void *)realloc, (size_t)p, 200);
        straight((void *)free, (size_t)p, 0);
    }
    return 0;
}
