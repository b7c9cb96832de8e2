/* Opens a descriptor with every function that can, each on a line of its own that says how many, and closes none.
 *
 * The functions that allocate (fopen, opendir, popen, tmpfile) show beside that their blocks are counted as ever.
 */
#define _GNU_SOURCE
#include "mallow.h"
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int listener, first_client, second_client;

static void must(int is_well) {
    if (!is_well) abort();
}

static void run(void *context) {
    int pair[2];
    char name[] = "/tmp/mallow-descriptors-XXXXXX", other[] = "/tmp/mallow-descriptors-XXXXXX";
    sigset_t none;
    (void)context;
    sigemptyset(&none);
    must(open("/dev/null", O_RDONLY) >= 0);                            /* opens 1 */
    must(open64("/dev/null", O_RDONLY) >= 0);                          /* opens 1 */
    must(openat(AT_FDCWD, "/dev/null", O_RDONLY) >= 0);                /* opens 1 */
    must(openat64(AT_FDCWD, "/dev/null", O_RDONLY) >= 0);              /* opens 1 */
    must(creat("/dev/null", 0600) >= 0);                               /* opens 1 */
    must(socket(AF_INET, SOCK_DGRAM, 0) >= 0);                         /* opens 1 */
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);              /* opens 2 */
    must(accept(listener, NULL, NULL) >= 0);                           /* opens 1 */
    must(accept4(listener, NULL, NULL, SOCK_CLOEXEC) >= 0);            /* opens 1 */
    must(pipe(pair) == 0);                                             /* opens 2 */
    must(pipe2(pair, O_CLOEXEC) == 0);                                 /* opens 2 */
    must(dup(0) >= 0);                                                 /* opens 1 */
    must(dup2(0, 100) == 100);                                         /* opens 1 */
    must(dup3(0, 101, O_CLOEXEC) == 101);                              /* opens 1 */
    must(fcntl(0, F_DUPFD, 102) >= 0);                                 /* opens 1 */
    must(fcntl(0, F_DUPFD_CLOEXEC, 102) >= 0);                         /* opens 1 */
    must(epoll_create(1) >= 0);                                        /* opens 1 */
    must(epoll_create1(EPOLL_CLOEXEC) >= 0);                           /* opens 1 */
    must(eventfd(0, 0) >= 0);                                          /* opens 1 */
    must(timerfd_create(CLOCK_MONOTONIC, 0) >= 0);                     /* opens 1 */
    must(signalfd(-1, &none, 0) >= 0);                                 /* opens 1 */
    must(inotify_init() >= 0);                                         /* opens 1 */
    must(inotify_init1(IN_CLOEXEC) >= 0);                              /* opens 1 */
    must(memfd_create("memory", 0) >= 0);                              /* opens 1 */
    must(shm_open("/mallow-descriptors", O_CREAT | O_RDWR, 0600) >= 0); /* opens 1 */
    must(posix_openpt(O_RDWR | O_NOCTTY) >= 0);                        /* opens 1 */
    must(mkstemp(name) >= 0);                                          /* opens 1 */
    must(mkostemp(other, O_CLOEXEC) >= 0);                             /* opens 1 */
    must(pidfd_open(getpid(), 0) >= 0);                                /* opens 1 */
    must(fopen("/dev/null", "r") != NULL);                             /* opens 1 */
    must(tmpfile() != NULL);                                           /* opens 1 */
    must(popen("true", "r") != NULL);                                  /* opens 1 */
    must(opendir("/") != NULL);                                        /* opens 1 */
    must(syscall(SYS_eventfd2, 0, 0) >= 0); /* nobody watches this one: it has a count and no line */
    /* What is closed again, and what is asked of a descriptor that is there, opens nothing. */
    close(open("/dev/null", O_RDONLY));
    must(dup2(100, 100) == 100 && fcntl(100, F_GETFD) >= 0 && open("/does/not/exist", O_RDONLY) < 0);
    unlink(name);
    unlink(other);
    shm_unlink("/mallow-descriptors");
}

/* Connects to itself: `accept` then has somebody to take. */
static int client(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int socket_number = socket(AF_INET, SOCK_STREAM, 0);
    if (!listener) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        must(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 4) == 0);
    }
    must(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    must(connect(socket_number, (struct sockaddr *)&address, sizeof address) == 0);
    return socket_number;
}

int main(void) {
    alarm(60);
    first_client = client();
    second_client = client();
    mallow_region_begin("descriptors");
    run(NULL);
    mallow_region_end("descriptors");
    return 0;
}
