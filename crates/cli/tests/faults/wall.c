/* A wall clock of its own for one process, as an object that is loaded before it: CLOCK_REALTIME is what the kernel says
   and the nanoseconds in the file that DECKWATCH_TEST_WALL names. The program that writes the file steps the clock. The
   kernel's stamps of packets step too: those that it took after the time that the file has second.

   Programs read clocks by the kernel's code in their address space (vDSO), some of them without the C library. So its
   functions are replaced there, where they begin. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The step, and the kernel's CLOCK_REALTIME at it. */
static const volatile int64_t *step_ns;

static int wall_gettime(clockid_t id, struct timespec *at) {
  if (syscall(SYS_clock_gettime, id, at) != 0) return -22;
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI) {
    int64_t ns = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec + *step_ns;
    at->tv_sec = ns / 1000000000;
    at->tv_nsec = ns % 1000000000;
  }
  return 0;
}

static int wall_timeofday(struct timeval *at, void *zone) {
  struct timespec now;
  (void)zone;
  wall_gettime(CLOCK_REALTIME, &now);
  if (at) *at = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

static time_t wall_time(time_t *at) {
  struct timespec now;
  wall_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

static void step_stamps(struct msghdr *message) {
  for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
    struct timespec at;
    int64_t ns;
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_len < CMSG_LEN(sizeof at)) continue;
    if (one->cmsg_type != SO_TIMESTAMPNS && one->cmsg_type != SO_TIMESTAMPING) continue;
    memcpy(&at, CMSG_DATA(one), sizeof at);
    ns = (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
    if (ns == 0 || ns < step_ns[1]) continue;
    ns += step_ns[0];
    at.tv_sec = ns / 1000000000;
    at.tv_nsec = ns % 1000000000;
    memcpy(CMSG_DATA(one), &at, sizeof at);
  }
}

/* In place of the C library's. */
ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
  ssize_t got = syscall(SYS_recvmsg, socket, message, flags);
  if (got >= 0 && step_ns) step_stamps(message);
  return got;
}

int recvmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags, struct timespec *patience) {
  int got = (int)syscall(SYS_recvmmsg, socket, messages, count, flags, patience);
  for (int index = 0; step_ns && index < got; index++) step_stamps(&messages[index].msg_hdr);
  return got;
}

static void fail(const char *why) {
  fprintf(stderr, "the wall clock cannot be replaced: %s\n", why);
  _exit(97);
}

/* Permits writing to all of the kernel's code, or takes the permission back: it cannot be divided. */
static void permit(int permission) {
  char line[256];
  FILE *maps = fopen("/proc/self/maps", "re");
  if (!maps) fail("/proc/self/maps");
  while (fgets(line, sizeof line, maps)) {
    unsigned long first, end;
    if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &first, &end) == 2 &&
        mprotect((void *)first, end - first, permission) != 0)
      fail("mprotect");
  }
  fclose(maps);
}

/* Has `function` of the kernel's code begin with a jump. */
static void replace(void *kernel, const char *function, void *own, int is_needed) {
  unsigned char *at = dlsym(kernel, function);
  if (!at) {
    if (is_needed) fail(function);
    return;
  }
#if defined(__x86_64__)
  unsigned char jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; /* mov rax, own; jmp rax */
  memcpy(jump + 2, &own, 8);
#elif defined(__aarch64__)
  unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0}; /* ldr x16, own; br x16 */
  memcpy(jump + 8, &own, 8);
#else
#error "no jump is known for this processor"
#endif
  memcpy(at, jump, sizeof jump);
  __builtin___clear_cache((char *)at, (char *)at + sizeof jump);
}

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("DECKWATCH_TEST_WALL");
  if (!file) return;
  int descriptor = open(file, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(file);
  step_ns = mmap(NULL, 2 * sizeof *step_ns, PROT_READ, MAP_SHARED, descriptor, 0);
  if (step_ns == MAP_FAILED) fail("mmap");
  close(descriptor);
#if defined(__aarch64__)
  const char *names[] = {"linux-vdso.so.1", "__kernel_clock_gettime", "__kernel_gettimeofday", "__kernel_time"};
#else
  const char *names[] = {"linux-vdso.so.1", "__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time"};
#endif
  void *kernel = dlopen(names[0], RTLD_LAZY | RTLD_NOLOAD);
  if (!kernel) fail(names[0]);
  permit(PROT_READ | PROT_WRITE | PROT_EXEC);
  replace(kernel, names[1], (void *)wall_gettime, 1);
  replace(kernel, names[2], (void *)wall_timeofday, 0);
  replace(kernel, names[3], (void *)wall_time, 0);
  permit(PROT_READ | PROT_EXEC);
}
