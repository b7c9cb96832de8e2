/* Hazard: a stack that ends at a return address of zero, and then goes on from the same place.
 * `enter` calls `body`, or jumps to it behind a zero in place of a return address; `body` leaves by a jump each time. Nothing
 * differs in between but that word.
 *
 *   leaf under body, and nothing: 8 allocations of 24 bytes
 *   leaf under body under enter under main: 8 allocations of 24 bytes
 * Each block is freed by body, right away: temporary 16.
 * allocations 16; bytes 16 * 24 = 384; frees 16; peak: one block at a time, 24 in 1; leaked 0. 2 stacks in all. */
#include "hazard.h"
#include <setjmp.h>

#define ROUNDS 8

static jmp_buf outside;

void enter(int is_called);
__asm__(".text\n"
        ".type enter, @function\n"
        "enter:\n"
        " .cfi_startproc\n"
        " sub $8, %rsp\n"
        " .cfi_def_cfa_offset 16\n"
        " test %edi, %edi\n"
        " je 1f\n"
        " call body\n"
        " ud2\n"
        "1: push $0\n"
        " .cfi_def_cfa_offset 24\n"
        " jmp body\n"
        " .cfi_endproc\n"
        ".size enter, . - enter\n");

static FRAME void *leaf(void) { void *p = malloc(24); KEEP(p); return p; }
FRAME void body(void);
FRAME void body(void) {
    free(leaf());
    longjmp(outside, 1);
}

int main(void) {
    for (volatile int round = 0; round < 2 * ROUNDS; round = round + 1)
        if (setjmp(outside) == 0) enter(round & 1);
    return 0;
}
