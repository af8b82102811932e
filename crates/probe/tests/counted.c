/* The program that tests/counters.rs counts. For each line "A L C W" on standard input it makes A allocations, L mutex
   locks and C system calls. If W is 1, it also waits for a lock that another thread holds for a while. Then it prints
   "done". */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t turns;
static void *volatile sink;

static void *holder(void *nothing) {
    for (;;) {
        pthread_barrier_wait(&turns);
        pthread_mutex_lock(&held);
        pthread_barrier_wait(&turns);
        usleep(20000);
        pthread_mutex_unlock(&held);
    }
    return nothing;
}

int main(void) {
    pthread_t thread;
    char line[64];
    int allocations, locks, calls, waits;
    pthread_barrier_init(&turns, NULL, 2);
    pthread_create(&thread, NULL, holder, NULL);
    printf("done\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%d %d %d %d", &allocations, &locks, &calls, &waits) == 4) {
        for (int i = 0; i < allocations; ++i) {
            sink = i % 2 ? malloc(64) : calloc(1, 64);
            free(sink);
        }
        for (int i = 0; i < locks; ++i) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
        for (int i = 0; i < calls; ++i) syscall(SYS_getppid);
        if (waits) {
            pthread_barrier_wait(&turns);
            pthread_barrier_wait(&turns);
            pthread_mutex_lock(&held);
            pthread_mutex_unlock(&held);
        }
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
