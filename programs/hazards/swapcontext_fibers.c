/* Hazard: fibers.
 * swapcontext changes the stack pointer to another stack; stacks lie in malloc'ed or mmap'ed memory, end where no
 * thread's stack ends, and may be unmapped while others run: a remembered stack must not be read again after that.
 *
 *   make_stack       malloc(65,536) for each of 4 long fibers: 4 allocations, 262,144 bytes, freed at the end
 *   long_leaf        under long_body: each long fiber, in each of its 20 turns, malloc(30): 80 allocations, 2,400
 *                    bytes; kept by the fiber over the switch and freed in its next turn before the new one is made,
 *                    the last one after the turns
 *   short_leaf_even / short_leaf_odd  under short_even / short_odd: in each of the 20 turns a short fiber runs once on
 *                    a fresh mmap'ed stack, which is unmapped right after and usually mapped again at the same
 *                    address: malloc(17) in even turns, malloc(19) in odd ones, freed there: 10 + 10 allocations, 170
 *                    + 190 bytes, temporary 20
 * allocations 4+80+20 = 104; bytes 262,144+2,400+360 = 264,904; frees 104.
 * temporary: the 20 short ones, and in the end fiber 3 frees its last block, but the short fiber's came after it: no
 * more.
 * peak: all stacks, four 30s and a 19 (the odd turns): 262,144 + 120 + 19 = 262,283 in 9 blocks. leaked 0. */
#define _GNU_SOURCE
#include "hazard.h"
#include <sys/mman.h>
#include <ucontext.h>

enum { FIBERS = 4, TURNS = 20, STACK = 65536 };
static ucontext_t scheduler, fibers[FIBERS], brief;

static FRAME void *make_stack(void) { void *p = malloc(STACK); KEEP(p); return p; }
static FRAME void *long_leaf(void) { void *p = malloc(30); KEEP(p); return p; }
static FRAME void short_leaf_even(void) {
    void *p = malloc(17);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void short_leaf_odd(void) {
    void *p = malloc(19);
    KEEP(p);
    free(p);
    STAY();
}

static FRAME void long_body(int self) {
    void *kept = NULL;
    for (int turn = 0; turn < TURNS; turn++) {
        free(kept);
        kept = long_leaf();
        swapcontext(&fibers[self], &scheduler);
    }
    free(kept);
    STAY();
}
static FRAME void short_even(void) { short_leaf_even(); STAY(); }
static FRAME void short_odd(void) { short_leaf_odd(); STAY(); }

static FRAME void run_brief(void (*body)(void)) {
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(stack != MAP_FAILED && getcontext(&brief) == 0, 10);
    brief.uc_stack.ss_sp = stack, brief.uc_stack.ss_size = STACK, brief.uc_link = &scheduler;
    makecontext(&brief, body, 0);
    swapcontext(&scheduler, &brief);
    munmap(stack, STACK);
}

int main(void) {
    void *stacks[FIBERS];
    for (int i = 0; i < FIBERS; i++) {
        stacks[i] = make_stack();
        EXPECT(getcontext(&fibers[i]) == 0, 11);
        fibers[i].uc_stack.ss_sp = stacks[i], fibers[i].uc_stack.ss_size = STACK, fibers[i].uc_link = &scheduler;
        makecontext(&fibers[i], (void (*)(void))long_body, 1, i);
    }
    for (int turn = 0; turn <= TURNS; turn++) {
        for (int i = 0; i < FIBERS; i++) swapcontext(&scheduler, &fibers[i]);
        if (turn < TURNS) run_brief(turn % 2 ? short_odd : short_even);
    }
    for (int i = 0; i < FIBERS; i++) free(stacks[i]);
    return 0;
}
