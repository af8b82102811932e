// Cyclone DDS in the bench of events. The server has the readers, the client the writer: an event passes one hop, with
// no channel between. The protocol is that of crates/probe/src/laboratory/end.rs. Shared memory tells the client of
// receipts.

#define _GNU_SOURCE
#include "event.h"

#include <dds/dds.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { CONSUMERS_MAX = 1000, WINDOW = 64, WARM_UP = 64, PER_CLOCK_READ = 16, SAMPLES_MAX = 1000000 };

struct shared {
    sem_t request, ready, whole;
    // Readers that the client wants.
    uint32_t consumers;
    _Atomic uint64_t whole_count;
    _Atomic int64_t last_ns;
};

static struct shared* shared;
static dds_entity_t participant, topic, readers[CONSUMERS_MAX];
static uint32_t reader_count;
static _Atomic uint32_t receipts[WINDOW];

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void check(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "cyclone-dds: %s\n", what);
    exit(1);
}

// Threads that are started later inherit all of this.
static void place(const char* processor, const char* fifo) {
    if (strcmp(processor, "-") != 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(atoi(processor), &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    if (strcmp(fifo, "-") != 0) {
        struct rlimit unblocked = {2000000, 2000000};
        setrlimit(RLIMIT_RTTIME, &unblocked);
        struct sched_param parameters = {.sched_priority = atoi(fifo)};
        sched_setscheduler(0, SCHED_FIFO, &parameters);
    }
}

static void greet(const char* reference) {
    printf("%s %s\n", sched_getscheduler(0) == SCHED_FIFO ? "fifo" : "other", reference);
    fflush(stdout);
}

static void join(void) {
    setenv("CYCLONEDDS_URI",
           "<General><Interfaces><NetworkInterface name='lo'/></Interfaces>"
           "<AllowMulticast>false</AllowMulticast></General>"
           "<Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer address='127.0.0.1'/></Peers></Discovery>",
           0);
    participant = dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL);
    check(participant > 0, "no participant");
    topic = dds_create_topic(participant, &Bench_Event_desc, "event", NULL, NULL);
    check(topic > 0, "no topic");
}

static dds_qos_t* reliable(void) {
    dds_qos_t* qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 4 * WINDOW);
    return qos;
}

static void receive(dds_entity_t reader, void* unused) {
    (void)unused;
    void* samples[WINDOW] = {NULL};
    dds_sample_info_t infos[WINDOW];
    const int count = dds_take(reader, samples, infos, WINDOW, WINDOW);
    for (int at = 0; at < count; at++) {
        if (!infos[at].valid_data) continue;
        const uint32_t number = ((const Bench_Event*)samples[at])->number;
        _Atomic uint32_t* place = &receipts[number % WINDOW];
        if (atomic_fetch_add(place, 1) + 1 < reader_count) continue;
        atomic_store(&shared->last_ns, now_ns());
        atomic_store(place, 0);
        atomic_fetch_add(&shared->whole_count, 1);
        sem_post(&shared->whole);
    }
    if (count > 0) dds_return_loan(reader, samples, count);
}

static void* control(void* unused) {
    (void)unused;
    dds_qos_t* qos = reliable();
    dds_listener_t* listener = dds_create_listener(NULL);
    dds_lset_data_available(listener, receive);
    for (;;) {
        while (sem_wait(&shared->request) != 0) {}
        for (uint32_t at = 0; at < reader_count; at++) dds_delete(readers[at]);
        for (int at = 0; at < WINDOW; at++) atomic_store(&receipts[at], 0);
        atomic_store(&shared->whole_count, 0);
        reader_count = shared->consumers;
        for (uint32_t at = 0; at < reader_count; at++) {
            readers[at] = dds_create_reader(participant, topic, qos, listener);
            check(readers[at] > 0, "no reader");
        }
        sem_post(&shared->ready);
    }
    return NULL;
}

static void map(const char* path, int flags) {
    const int file = open(path, flags, 0600);
    check(file >= 0, "no shared memory");
    if (flags & O_CREAT) check(ftruncate(file, sizeof *shared) == 0, "no shared memory");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    check(shared != MAP_FAILED, "no shared memory");
    close(file);
}

static void serve(void) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/dev/shm/deckwatch-cyclone-%d", (int)getpid());
    map(path, O_RDWR | O_CREAT | O_EXCL);
    sem_init(&shared->request, 1, 0);
    sem_init(&shared->ready, 1, 0);
    sem_init(&shared->whole, 1, 0);
    join();
    pthread_t thread;
    check(pthread_create(&thread, NULL, control, NULL) == 0, "no thread");
    greet(path);
    while (fgets(line, sizeof line, stdin) != NULL) {}
    unlink(path);
    _exit(0);
}

static uint32_t* samples;
static size_t sample_count;

// Returns false if an event has not arrived.
static int await_whole(uint64_t count) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    while (atomic_load(&shared->whole_count) < count)
        if (sem_timedwait(&shared->whole, &until) != 0 && errno != EINTR) return 0;
    return 1;
}

struct run {
    int is_stream;
    size_t count;
    int64_t budget_ns;
    dds_entity_t writer;
    Bench_Event event;
    uint64_t pushed;
};

static int push(struct run* run) {
    run->event.number = (uint32_t)run->pushed++;
    return dds_write(run->writer, &run->event) == DDS_RETCODE_OK;
}

static const char* one_by_one(struct run* run) {
    int64_t begin_ns = 0;
    for (size_t at = 0; at < WARM_UP + run->count; at++) {
        const int64_t before_ns = now_ns();
        if (at == WARM_UP) begin_ns = before_ns;
        if (at > WARM_UP && before_ns - begin_ns >= run->budget_ns) break;
        if (!push(run) || !await_whole(run->pushed)) return "an event has not arrived";
        if (at < WARM_UP) continue;
        const int64_t took_ns = atomic_load(&shared->last_ns) - before_ns;
        samples[sample_count++] = took_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)took_ns;
    }
    printf("ok %zu\n", sample_count);
    fwrite(samples, sizeof *samples, sample_count, stdout);
    return NULL;
}

static const char* stream(struct run* run) {
    const int64_t begin_ns = now_ns();
    while (run->pushed < run->count && now_ns() - begin_ns < run->budget_ns)
        for (int at = 0; at < PER_CLOCK_READ; at++) {
            const uint64_t next = run->pushed + 1;
            if (next > WINDOW && !await_whole(next - WINDOW)) return "an event has not arrived";
            if (!push(run)) return "an event was not written";
        }
    if (!await_whole(run->pushed)) return "an event has not arrived";
    printf("sum %llu %lld\n", (unsigned long long)run->pushed, (long long)(now_ns() - begin_ns));
    return NULL;
}

static const char* command(const char* line) {
    char kind[32];
    unsigned consumers;
    size_t octets, back, count;
    long long budget_ns;
    const char* const form = "%31[^/]/%u/%*s %zu %zu %zu %lld";
    const int read = sscanf(line, form, kind, &consumers, &octets, &back, &count, &budget_ns);
    if (read != 6 || consumers == 0 || consumers > CONSUMERS_MAX || octets > 1 << 24) return "this is no command";
    struct run run = {.count = count < SAMPLES_MAX ? count : SAMPLES_MAX, .budget_ns = budget_ns};
    sample_count = 0;
    shared->consumers = consumers;
    sem_post(&shared->request);
    while (sem_wait(&shared->ready) != 0) {}
    while (sem_trywait(&shared->whole) == 0) {}
    dds_qos_t* qos = reliable();
    run.writer = dds_create_writer(participant, topic, qos, NULL);
    dds_delete_qos(qos);
    if (run.writer <= 0) return "no writer";
    dds_publication_matched_status_t matched = {0};
    for (int looks = 0; looks < 1000 && matched.current_count < consumers; looks++) {
        dds_get_publication_matched_status(run.writer, &matched);
        usleep(10000);
    }
    const char* fault = NULL;
    run.event.payload._length = run.event.payload._maximum = (uint32_t)octets;
    run.event.payload._buffer = calloc(octets ? octets : 1, 1);
    if (matched.current_count < consumers) fault = "not all readers were found";
    else fault = strstr(kind, "stream") != NULL ? stream(&run) : one_by_one(&run);
    free(run.event.payload._buffer);
    dds_delete(run.writer);
    return fault;
}

int main(int count, char** arguments) {
    check(count >= 4, "a role, a processor and a priority are needed");
    place(arguments[2], arguments[3]);
    if (strcmp(arguments[1], "server") == 0) serve();
    check(count >= 5, "a reference is needed");
    map(arguments[4], O_RDWR);
    samples = malloc(SAMPLES_MAX * sizeof *samples);
    join();
    greet("ready");
    char line[256];
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char* fault = command(line);
        if (fault != NULL) printf("error %s\n", fault);
        fflush(stdout);
    }
    _exit(0);
}
