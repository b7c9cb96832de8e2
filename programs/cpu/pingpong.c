/* Two threads hand a byte to and fro, 20,000 times: as many waits as there are context switches, each a few microseconds long.

   Says how many switches both threads made between its first line and its last, and what passed in ns: on the clock for both, and on processors. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void *echo(void *unused) {
    char byte;
    while (read(there[0], &byte, 1) == 1 && byte)
        if (write(back[1], &byte, 1) != 1)
            break;
    return unused;
}

int main(void) {
    pthread_t thread;
    char byte = 'x';
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    long before = switches();
    long long clock = now(CLOCK_MONOTONIC), processors = now(CLOCK_PROCESS_CPUTIME_ID);
    pthread_create(&thread, NULL, echo, NULL);
    for (int i = 0; i < 20000; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 1;
    clock = now(CLOCK_MONOTONIC) - clock;
    processors = now(CLOCK_PROCESS_CPUTIME_ID) - processors;
    printf("%ld %lld %lld\n", switches() - before, 2 * clock, processors);
    byte = 0;
    if (write(there[1], &byte, 1) != 1)
        return 1;
    pthread_join(thread, NULL);
    return 0;
}
