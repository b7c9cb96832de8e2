/* A stranger at mallow's door: knocks at every abstract socket whose name begins with a word, as another user if it can.
 *
 *     knock silent WORD     connects once to each and says nothing
 *     knock flood WORD      connects and goes, as fast as it can
 *     knock talk WORD       connects and says something that is no handshake, as fast as it can
 *     knock nowhere WORD    does as much work at a door that is not there
 *
 * It goes on until it is killed. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NAMES_MAX 64

struct name {
    char text[108];
    size_t bytes;
};

/* The abstract names that begin with a word. */
static int look(const char *word, struct name *names) {
    char line[512];
    int count = 0;
    FILE *list = fopen("/proc/net/unix", "r");
    while (list != NULL && count < NAMES_MAX && fgets(line, sizeof line, list) != NULL) {
        char *at = strchr(line, '@');
        if (at == NULL || strncmp(at + 1, word, strlen(word)) != 0) continue;
        size_t bytes = strcspn(at + 1, "\n");
        if (bytes > 100) continue;
        memcpy(names[count].text, at + 1, bytes);
        names[count++].bytes = bytes;
    }
    if (list != NULL) fclose(list);
    return count;
}

/* A connection; it does not wait for a place in the queue. */
static int knock(const struct name *name) {
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path + 1, name->text, name->bytes);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name->bytes);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, bytes) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static int is_known(const struct name *name, const struct name *known, int count) {
    for (int i = 0; i < count; i++)
        if (known[i].bytes == name->bytes && memcmp(known[i].text, name->text, name->bytes) == 0) return 1;
    return 0;
}

static void stay_silent(const char *word) {
    static struct name known[NAMES_MAX];
    struct name names[NAMES_MAX];
    int count = 0;
    for (;; usleep(2000)) {
        int found = look(word, names);
        for (int i = 0; i < found; i++)
            if (!is_known(&names[i], known, count) && count < NAMES_MAX && knock(&names[i]) >= 0)
                known[count++] = names[i];
    }
}

static void go_on(const char *mode, const char *word) {
    struct name names[NAMES_MAX];
    char message[2100];
    memset(message, 'x', sizeof message);
    for (;;) {
        int found = look(word, names);
        if (found == 0 && strcmp(mode, "nowhere") != 0) usleep(2000);
        if (strcmp(mode, "nowhere") == 0) {
            memcpy(names[0].text, "mallow-nowhere", 14);
            names[0].bytes = 14;
            found = 1;
        }
        for (int times = 0; times < 2000; times++) {
            int fd = found > 0 ? knock(&names[times % found]) : -1;
            if (fd < 0) continue;
            if (strcmp(mode, "talk") == 0 && send(fd, message, 32 + (size_t)times, MSG_NOSIGNAL) < 0) perror("send");
            close(fd);
        }
    }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 3;
    if (strcmp(words[1], "silent") == 0) stay_silent(words[2]);
    go_on(words[1], words[2]);
    return 0;
}
