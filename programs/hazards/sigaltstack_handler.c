/* Hazard: a handler on its own stack.
 * The stack pointer jumps to the alternate stack and the unwinder has to cross the signal frame back to the normal
 * one: addresses no longer grow from frame to frame, and the interrupted address is not a return address.
 *
 * 50 rounds: raise_below raises SIGUSR1 at one of two depths (from shallow, or from deep through shallow); on_signal
 * runs on the alternate stack and calls in_handler: malloc(90), freed by main's loop after the return: temporary.
 *   in_handler  50 allocations, 4,500 bytes; its stack goes on through on_signal and raise_below to main
 *   no_handler  before each raise malloc(10), freed after in_handler's block: 50 allocations, 500 bytes
 * allocations 100; bytes 5,000; frees 100; temporary 50; peak 100 in 2; leaked 0. */
#define _GNU_SOURCE
#include "hazard.h"
#include <signal.h>

static char alternate[65536];
static void *from_handler;

static FRAME void *in_handler(void) { void *p = malloc(90); KEEP(p); return p; }
static FRAME void *no_handler(void) { void *p = malloc(10); KEEP(p); return p; }

static void on_signal(int number) {
    char here;
    (void)number;
    EXPECT(&here >= alternate && &here < alternate + sizeof alternate, 10);
    from_handler = in_handler();
}

static FRAME void raise_below(void) { raise(SIGUSR1); STAY(); }
static FRAME void shallow(void) { raise_below(); STAY(); }
static FRAME void deep(void) { shallow(); STAY(); }

int main(void) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    EXPECT(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0, 11);
    for (int i = 0; i < 50; i++) {
        void *plain = no_handler();
        if (i % 2) deep();
        else shallow();
        free(from_handler);
        free(plain);
    }
    return 0;
}
