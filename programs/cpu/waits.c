/* Time off the processors whose amount is known: sleeps of 4 x 50, 2 x 100 and 1 x 200 ms, a mutex that somebody holds for 150 ms, a pipe
   that stays empty for 100 ms, and two threads that share a processor until each had 60 ms of it.

   Each part says on stdout what passed on the clock and what it had of a processor, in ns: the difference is what it was off. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PART __attribute__((noinline)) void

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_about_to_lock;
static int ends[2];
static volatile unsigned long sum;

static long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void nap(int ms) {
    struct timespec time = {0, ms * 1000000L};
    nanosleep(&time, NULL);
    sum++;
}

PART sleep_50(void) {
    for (int i = 0; i < 4; i++)
        nap(50);
}

PART sleep_100(void) {
    for (int i = 0; i < 2; i++)
        nap(100);
}

PART sleep_200(void) {
    nap(200);
    sum++;
}

PART of_mutex(void) {
    is_about_to_lock = 1;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    sum++;
}

PART of_pipe(void) {
    char byte;
    sum += read(ends[0], &byte, 1);
}

PART compete(void) {
    long long start = now(CLOCK_THREAD_CPUTIME_ID);
    while (now(CLOCK_THREAD_CPUTIME_ID) - start < 60000000)
        for (int i = 0; i < 10000; i++)
            sum += i;
}

static void timed(const char *name, void (*part)(void)) {
    long long wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    part();
    cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    wall = now(CLOCK_MONOTONIC) - wall;
    printf("%s %lld %lld\n", name, wall, cpu);
}

static void *locking(void *unused) {
    pthread_setname_np(pthread_self(), "locking");
    timed("of_mutex", of_mutex);
    return unused;
}

static void *reading(void *unused) {
    pthread_setname_np(pthread_self(), "reading");
    timed("of_pipe", of_pipe);
    return unused;
}

static void *competing(void *unused) {
    pthread_setname_np(pthread_self(), "competing");
    timed("compete", compete);
    return unused;
}

int main(void) {
    pthread_t thread;
    timed("sleep_50", sleep_50);
    timed("sleep_100", sleep_100);
    timed("sleep_200", sleep_200);

    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, locking, NULL);
    while (!is_about_to_lock)
        sched_yield();
    nap(150);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);

    if (pipe(ends) != 0)
        return 1;
    pthread_create(&thread, NULL, reading, NULL);
    nap(100);
    if (write(ends[1], "", 1) != 1)
        return 1;
    pthread_join(thread, NULL);

    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_create(&thread, NULL, competing, NULL);
    timed("compete", compete);
    pthread_join(thread, NULL);
    return 0;
}
