/* Hazard: malloc in signal handlers, synchronous and asynchronous.
 * The handler's frames stand on top of whatever was interrupted. The asynchronous signal comes while main spins and
 * holds nothing of malloc's, but possibly anywhere in the spin's frames.
 *
 *   sync_block   under on_raise: 10 times raise(SIGUSR1) between making and freeing a block of 100 bytes (around):
 *                malloc(20), freed by the handler: 10 allocations, 200 bytes, temporary 10
 *   around       10 allocations, 1,000 bytes, not temporary: the handler allocated in between, on the same thread
 *   async_block  under on_alarm: SIGALRM every 2 ms while main spins in wait_for_alarms until 25 have come;
 *                malloc(16), freed by the handler: 25 allocations, 400 bytes, temporary 25; later alarms do nothing
 * allocations 45; bytes 1,600; frees 45; temporary 35; peak 120 in 2; leaked 0. */
#define _GNU_SOURCE
#include "hazard.h"
#include <signal.h>
#include <sys/time.h>

static volatile int alarms;

static FRAME void sync_block(void) {
    void *p = malloc(20);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void async_block(void) {
    void *p = malloc(16);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void *around(void) { void *p = malloc(100); KEEP(p); return p; }

static void on_raise(int number) {
    (void)number;
    sync_block();
    STAY();
}
static void on_alarm(int number) {
    (void)number;
    if (alarms == 25) return;
    async_block();
    alarms = alarms + 1;
}
static FRAME void wait_for_alarms(void) {
    while (alarms < 25) STAY();
}

int main(void) {
    struct sigaction raised = {.sa_handler = on_raise}, alarmed = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    EXPECT(sigaction(SIGUSR1, &raised, NULL) == 0 && sigaction(SIGALRM, &alarmed, NULL) == 0, 10);
    for (int i = 0; i < 10; i++) {
        void *p = around();
        raise(SIGUSR1);
        free(p);
    }
    EXPECT(setitimer(ITIMER_REAL, &every, NULL) == 0, 11);
    wait_for_alarms();
    EXPECT(setitimer(ITIMER_REAL, &never, NULL) == 0, 12);
    return 0;
}
