/* Work in known shares: of seven parts three are the main thread's in `three`, two a thread's, one a child's that is another program, one
   in `deep`, below a stack of 12 KiB.

   shares PARTS: how many millions of rounds one part is. `shares PARTS child` does the child's part. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sum;
static unsigned long rounds;

/* All time is spent here. */
__attribute__((noinline)) void spin(unsigned long parts) {
    for (unsigned long i = 0; i < parts * rounds; i++)
        sum += i;
}

__attribute__((noinline)) void three(void) {
    spin(3);
    sum++;
}

__attribute__((noinline)) void deep(void) {
    volatile char room[12 << 10];
    memset((char *)room, 1, sizeof room);
    spin(1);
    sum += room[sum % sizeof room];
}

static void *of_thread(void *unused) {
    pthread_setname_np(pthread_self(), "two-parts");
    spin(2);
    sum++;
    return unused;
}

__attribute__((noinline)) void of_child(void) {
    spin(1);
    sum++;
}

int main(int count, char **words) {
    rounds = strtoul(count > 1 ? words[1] : "1", NULL, 10) * 1000000;
    if (count > 2) {
        of_child();
        return 0;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, of_thread, NULL);
    three();
    deep();
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0)
        execl("/proc/self/exe", "shares-child", words[1], "child", (char *)NULL);
    waitpid(child, NULL, 0);
    return 7;
}
