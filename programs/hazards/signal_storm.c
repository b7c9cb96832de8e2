/* Hazard: a thousand signals per second into a program that allocates all the time.
 * The handler allocates as well, anywhere between the program's own calls: the remembered stack changes under the feet
 * of the code that was about to use it. malloc is not async-signal-safe, so the program raises a flag around its own
 * calls and the handler skips when it is up: what happens is legal, and counted exactly.
 *
 * main_pair (under main_loop) makes and frees blocks of 64 bytes; alarm_pair (under on_alarm) one of 32 bytes per
 * signal. The loop ends after 300 signals that allocated. Both count in volatile variables, printed at the end as
 * `allocations N`, `bytes N`, `frees N`: these are the totals. frees = allocations, so nothing is leaked; how many are
 * temporary depends on where the signals strike.
 * peak: at most one block of each: never above 96; not checked. */
#define _GNU_SOURCE
#include "hazard.h"
#include <signal.h>
#include <sys/time.h>

static volatile unsigned long main_allocations, main_frees, alarm_allocations, alarm_frees;
static volatile sig_atomic_t inside;

static FRAME void alarm_pair(void) {
    void *p = malloc(32);
    KEEP(p);
    alarm_allocations = alarm_allocations + 1;
    free(p);
    alarm_frees = alarm_frees + 1;
}
static void on_alarm(int number) {
    (void)number;
    if (!inside) alarm_pair();
    STAY();
}
static FRAME void main_pair(void) {
    inside = 1;
    void *p = malloc(64);
    inside = 0;
    KEEP(p);
    main_allocations = main_allocations + 1;
    for (int i = 0; i < 200; i++) STAY();
    inside = 1;
    free(p);
    inside = 0;
    main_frees = main_frees + 1;
}
static FRAME void main_loop(void) {
    while (alarm_allocations < 300) main_pair();
}

int main(void) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &every, NULL) == 0, 10);
    main_loop();
    EXPECT(setitimer(ITIMER_REAL, &never, NULL) == 0, 11);
    say_figure("allocations", main_allocations + alarm_allocations);
    say_figure("bytes", 64 * main_allocations + 32 * alarm_allocations);
    say_figure("frees", main_frees + alarm_frees);
    return 0;
}
