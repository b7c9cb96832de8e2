/* Hazard: code without unwind tables that keeps something else in rbp than a frame pointer.
 * A walk that follows rbp there looks at what it points to. The largest addresses wrap around when something is added to them, which
 * must not make them lie in the stack.
 *
 * 12 values of rbp, 10 blocks of 100 bytes each, freed at once.
 *   untold  120 allocations, 12,000 bytes, all temporary; peak 100 in 1 block, leaked 0 */
#include "hazard.h"

/* malloc(bytes), with this in rbp. */
void *untold(size_t bytes, size_t rbp);
__asm__(".text\n .type untold, @function\n"
        "untold: push %rbp\n mov %rsi, %rbp\n call malloc@plt\n pop %rbp\n ret\n .size untold, .-untold\n");

int main(void) {
    size_t here = (size_t)__builtin_frame_address(0);
    size_t values[] = {
        0, 1, 8, (size_t)-1, (size_t)-8, (size_t)-16, (size_t)1 << 63, ((size_t)1 << 47) - 8, (size_t)1 << 47,
        here & ~(size_t)4095, here + 1, here + (1 << 30),
    };
    for (unsigned value = 0; value < sizeof values / sizeof *values; value++)
        for (volatile int i = 0; i < 10; i = i + 1) {
            void *p = untold(100, values[value]);
            STAY();
            free(p);
        }
    return 0;
}
