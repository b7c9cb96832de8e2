/* A program that writes over memory that is not its own, and hits the recorder's: the memo of its main thread.
 *
 * It allocates 100 blocks, sets the number of kept frames (the second word of the memo) to one that cannot be, and
 * allocates 100 more. The recorder finds it out at the 101st call, records that one, and stops; the program must not notice.
 *
 * The memo is known in /proc/self/smaps: private memory without a file that is larger than 3 MB and stays out of core dumps
 * ("dd"). Without a recorder there is none.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char maps[1 << 20];

static uint64_t *find_memo(void) {
    size_t used = 0;
    ssize_t got;
    int fd = open("/proc/self/smaps", O_RDONLY);
    while ((got = read(fd, maps + used, sizeof maps - 1 - used)) > 0)
        used += (size_t)got;
    close(fd);
    maps[used] = 0;
    unsigned long start = 0, end = 0, inode = 1;
    for (char *line = maps; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        unsigned long from, to, offset, node;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s %lx %*s %lu", &from, &to, rights, &offset, &node) == 5)
            start = from, end = to, inode = strcmp(rights, "rw-p") == 0 ? node : 1;
        char *behind = strchr(line, '\n');
        if (strncmp(line, "VmFlags:", 8) == 0 && inode == 0 && end - start > 3000000) {
            *behind = 0;
            int is_memo = strstr(line, " dd") != NULL;
            *behind = '\n';
            if (is_memo)
                return (uint64_t *)start;
        }
    }
    return NULL;
}

static void allocate(int count) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(16);
        free(block);
    }
}

int main(void) {
    allocate(100);
    uint64_t *memo = find_memo();
    if (memo && memo[1] > 0 && memo[1] < 100)
        memo[1] = 1ull << 40;
    else if (memo)
        return 3;
    allocate(100);
    if (write(1, memo ? "hit\n" : "missed\n", memo ? 4 : 7) < 0)
        return 4;
    return 0;
}
