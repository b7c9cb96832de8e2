// Starts itself once for each system call of a kernel, behind a filter that answers that one call, and says how each of them ended.
//
//   filtered_starts kill|refuse at-once|forked|spawned|shell|popen|no [FIRST STEP]
//
// The call ends the process, or fails with EPERM. Who has set the filter takes its own place, or forks a child that does, or spawns one, or has a shell start one; or goes on
// itself, in a thread and a forked child too.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 460 };
extern char **environ;

static void lock_in(unsigned call, unsigned action) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(99);
}

static int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

static void *allocate(void *unused) {
  for (int i = 0; i < 100; i++) {
    void *volatile block = malloc(i + 1);
    free(block);
  }
  return unused;
}

static void go_on(void) {
  allocate(NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, allocate, NULL) == 0) pthread_join(thread, NULL);
  // More than a ring holds.
  for (int i = 0; i < 350; i++) allocate(NULL);
  pid_t child = fork();
  if (child == 0) {
    allocate(NULL);
    _exit(7);
  }
  int status = child < 0 ? 0 : status_of(child);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : 95);
}

static void start(char *path, const char *how) {
  char way = how[0];
  if (strcmp(how, "shell") == 0 || way == 'p') {
    char command[4200];
    snprintf(command, sizeof command, "exec %s child", path);
    FILE *pipe = way == 'p' ? popen(command, "r") : NULL;
    if (way == 'p' && pipe == NULL) _exit(94);
    int status = pipe == NULL ? system(command) : pclose(pipe);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 95);
  }
  char *own[] = {path, "child", NULL};
  pid_t child = 0;
  if (way == 's' && posix_spawn(&child, path, NULL, NULL, own, environ) != 0) _exit(97);
  if (way == 'f') child = fork();
  if (child < 0) _exit(96);
  if (child == 0) {
    execv(path, own);
    _exit(98);
  }
  int status = status_of(child);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 95);
}

int main(int count, char **words) {
  if (count < 2) return 2;
  if (count == 2) {
    allocate(NULL);
    return 7;
  }
  unsigned action = strcmp(words[1], "kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | 1;
  unsigned first = count > 3 ? atoi(words[3]) : 0, step = count > 4 ? atoi(words[4]) : 1;
  for (unsigned call = first; call < CALLS; call += step) {
    // Nobody could end.
    if (action != SECCOMP_RET_KILL_PROCESS && (call == SYS_exit || call == SYS_exit_group)) continue;
    // Whether a thread has ended before somebody waits for it is a matter of luck.
    if (words[2][0] == 'n' && call == SYS_futex) continue;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      lock_in(call, action);
      if (words[2][0] == 'n') go_on();
      start(words[0], words[2]);
    }
    printf("%u %x\n", call, status_of(child));
  }
  return 0;
}
