/* Hazard: coroutines on stacks made by hand, at whose top lies a code address and above it a guard page.
 * The address is that of the middle of a function with a frame of 64 KiB, as a jump into a half-finished frame leaves it: whoever
 * believes the table of that function looks for its caller behind the guard. glibc's own makecontext puts an
 * address there as well.
 *
 * 20 times, each on a fresh stack of 16 KiB with a guard page above and below: entry makes 24 bytes and frees them.
 *   on_own_stack  20 allocations, 480 bytes, temporary 20, under entry
 * frees 20; peak 24 in 1 block; leaked 0. */
#include "hazard.h"
#include <sys/mman.h>

enum { STACK_BYTES = 16384, PAGE = 4096, ROUNDS = 20 };

void *in_wide_frame; /* set by wide_frame: an address at which its frame is whole */

static FRAME void wide_frame(int depth) {
    volatile char room[65536];
    room[depth] = 1;
    __asm__ volatile("lea 1f(%%rip), %%rax\n\tmov %%rax, %0\n1:\n\tnop" : "=m"(in_wide_frame) : : "rax", "memory");
    KEEP(room);
}

void *stack_of_main; /* where enter left */
void enter(void *top, void (*entry)(void));
void leave(void);
__asm__(".text\n"
        "enter: push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp, stack_of_main(%rip)\n mov %rdi, %rsp\n jmp *%rsi\n"
        "leave: mov stack_of_main(%rip), %rsp\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");

static FRAME void on_own_stack(void) { void *p = malloc(24); KEEP(p); free(p); STAY(); }
static FRAME void entry(void) { on_own_stack(); leave(); }

int main(void) {
    wide_frame(3);
    for (volatile int i = 0; i < ROUNDS; i = i + 1) {
        char *room = mmap(NULL, STACK_BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(room != MAP_FAILED && mprotect(room + PAGE, STACK_BYTES, PROT_READ | PROT_WRITE) == 0, 2);
        void **top = (void **)(room + PAGE + STACK_BYTES);
        top[-1] = in_wide_frame;
        enter(top - 1, entry);
        EXPECT(munmap(room, STACK_BYTES + 2 * PAGE) == 0, 3);
    }
    return 0;
}
