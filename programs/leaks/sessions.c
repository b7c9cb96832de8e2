/* A server's loop with three kinds of memory that is live at the end, and one of them is a leak.
 *
 * - a table of routes, made once at the start: 64 blocks of 100 bytes;
 * - a cache of 50 entries of 1,000 bytes that is full after a twentieth of the run, and replaces its entries from then on;
 * - a session of 300 bytes for each request, forgotten on one path: every tenth request takes it. That is the leak.
 *
 * 4,000 requests: 400 sessions, 120,000 bytes leaked. A request comes every millisecond by the clock, whatever held the one before up, so that
 * there are four seconds of a course to judge: a busy machine that stands still for a tenth of a second does not change it.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUESTS = 4000, ROUTES = 64, CACHE_ENTRIES = 50 };

static char *routes[ROUTES];
static char *cache[CACHE_ENTRIES];

struct session {
    char user[300];
};

static void load_routes(void)
{
    for (int i = 0; i < ROUTES; i++) {
        routes[i] = malloc(100);
        memset(routes[i], i, 100);
    }
}

static void remember(int request)
{
    char **entry = &cache[request / 4 % CACHE_ENTRIES];
    free(*entry);
    *entry = malloc(1000);
    memset(*entry, request, 1000);
}

static struct session *open_session(int request)
{
    struct session *session = malloc(sizeof *session); /* the leak */
    memset(session, request, sizeof *session);
    return session;
}

static void handle(int request)
{
    struct session *session = open_session(request);
    remember(request);
    if (request % 10 == 3)
        return; /* an early return, and nobody frees the session */
    free(session);
}

int main(void)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    load_routes();
    for (int request = 0; request < REQUESTS; request++) {
        handle(request);
        next.tv_nsec += 1000 * 1000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return 0;
}
