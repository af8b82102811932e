/* deckwatch_carrier.c: see deckwatch_carrier.h. */
#define _GNU_SOURCE
#include "deckwatch_carrier.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The version of the protocol that adapters/README.md describes. */
#define PROTOCOL 1
/* Octets of an answer line: the longest texts are errors and endpoints, which JSON may escape to six times the size. */
#define ANSWER_MAX 32768
#define TEXT_MAX 4000
/* Names in `honoured` or `ignored`: there are nine settings. */
#define SETTINGS_MAX 16
#define SEND_BOUND_MIN_NS INT64_C(1000000)
#define SEND_BOUND_MAX_NS INT64_C(5000000000)
/* The same timer slack as that of Deckwatch's own carriers. */
#define TIMER_SLACK_NS 1ul
#define MESSAGES_MAX (UINT64_C(1) << 26)
/* Half of the time that Deckwatch gives a program to end. */
#define LINGER_MAX_NS INT64_C(2000000000)
#define PATH_SIZE_MAX 8192
#define BROKER_ATTEMPTS 3
#define BROKER_BOUND_NS INT64_C(5000000000)

/* A supplier's record of one message to one slot. */
typedef struct supplier_record {
    int64_t sent_ns;
    _Atomic int64_t returned_ns; /* written last: the record is whole then */
    int64_t transmit_realtime_ns;
    uint32_t error;
    uint32_t reserved;
} supplier_record;

/* A consumer's record of one arrival. */
typedef struct consumer_record {
    uint64_t sequence;
    int64_t kernel_receive_realtime_ns;
    _Atomic int64_t received_ns;
    int64_t handled_ns;
    int64_t execution_ns;
    uint64_t flags;
} consumer_record;

_Static_assert(sizeof(supplier_record) == 32, "the layout of the record file");
_Static_assert(sizeof(consumer_record) == 48, "the layout of the record file");

struct dw_consumer {
    consumer_record *records;
    atomic_uint_fast64_t arrivals;
    atomic_uint_fast64_t unrecorded;
    atomic_uint_fast64_t malformed;
    atomic_uint_fast64_t overflows;
};

/* A sending thread of a supplier. */
typedef struct slot {
    pthread_t thread;
    void *sender;
    uint8_t *octets;
    supplier_record *records;
} slot;

/* State of the whole process: it plays one part of one stream. */
static dw_plan plan;
static dw_destination destinations[DW_DESTINATIONS_MAX];
static bool destination_is_given[DW_DESTINATIONS_MAX];
static const char *body_path, *dues_path, *records_path;
static uint64_t records_at;
static bool lock_memory;
static const int64_t *dues;
static void *records;
static dw_consumer consumer;
static const dw_carrier *carrier;
static slot *slots;
static atomic_uint_fast64_t refusals;

static atomic_bool is_stopped;
static atomic_bool has_failed;
static int stop_event = -1;
static pthread_mutex_t go_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go_changed = PTHREAD_COND_INITIALIZER;
static bool is_started;
static int64_t start_ns, stop_ns;

static pthread_mutex_t answer_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *honoured[SETTINGS_MAX], *ignored[SETTINGS_MAX];
static unsigned honoured_count, ignored_count;
static char own_endpoint[DW_ENDPOINT_MAX], own_listening[DW_ENDPOINT_MAX];

/* ---- Answers ---- */

typedef struct answer {
    char text[ANSWER_MAX];
    size_t length;
} answer;

static void put(answer *out, const char *text) {
    size_t size = strlen(text);
    if (size < sizeof out->text - out->length) {
        memcpy(out->text + out->length, text, size);
        out->length += size;
    }
}

/* Returns the octets of the UTF-8 character at `text`, or 0 if there is none. */
static unsigned utf8_size(const unsigned char *text) {
    unsigned size = text[0] < 0x80   ? 1
                    : text[0] < 0xC2 ? 0
                    : text[0] < 0xE0 ? 2
                    : text[0] < 0xF0 ? 3
                    : text[0] < 0xF5 ? 4
                                     : 0;
    for (unsigned i = 1; i < size; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    /* Overlong forms, surrogates and numbers above U+10FFFF. */
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
        (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
        return 0;
    return size;
}

static void put_string(answer *out, const char *text) {
    put(out, "\"");
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        char piece[8];
        unsigned size = utf8_size(at);
        if (*at < 0x20 || *at == 0x7F)
            snprintf(piece, sizeof piece, "\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            snprintf(piece, sizeof piece, "\\%c", *at);
        else if (size == 0)
            snprintf(piece, sizeof piece, "?");
        else
            snprintf(piece, sizeof piece, "%.*s", (int)size, (const char *)at);
        put(out, piece);
        at += size ? size : 1;
    }
    put(out, "\"");
}

static void put_strings(answer *out, const char *const names[], unsigned count) {
    put(out, "[");
    for (unsigned i = 0; i < count; i++) {
        put(out, i ? "," : "");
        put_string(out, names[i]);
    }
    put(out, "]");
}

static void write_answer(const answer *out) {
    for (size_t at = 0; at < out->length;) {
        ssize_t size = write(STDOUT_FILENO, out->text + at, out->length - at);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return; /* Deckwatch is gone; standard input ends too. */
        at += (size_t)size;
    }
}

static void say_text(const char *event, const char *format, va_list arguments) {
    static answer out;
    char text[TEXT_MAX];
    vsnprintf(text, sizeof text, format, arguments);
    pthread_mutex_lock(&answer_lock);
    out.length = 0;
    put(&out, "{\"event\":\"");
    put(&out, event);
    put(&out, "\",\"text\":");
    put_string(&out, text);
    put(&out, "}\n");
    write_answer(&out);
    pthread_mutex_unlock(&answer_lock);
}

static void say_ready(void) {
    static answer out;
    pthread_mutex_lock(&answer_lock);
    out.length = 0;
    put(&out, "{\"event\":\"ready\"");
    if (*own_endpoint) {
        put(&out, ",\"endpoint\":");
        put_string(&out, own_endpoint);
    }
    if (*own_listening) {
        put(&out, ",\"listening\":");
        put_string(&out, own_listening);
    }
    put(&out, ",\"honoured\":");
    put_strings(&out, honoured, honoured_count);
    put(&out, ",\"ignored\":");
    put_strings(&out, ignored, ignored_count);
    put(&out, "}\n");
    write_answer(&out);
    pthread_mutex_unlock(&answer_lock);
}

static void say_done(void) {
    char text[256];
    snprintf(text, sizeof text,
             "{\"event\":\"done\",\"unrecorded\":%" PRIuFAST64 ",\"malformed\":%" PRIuFAST64
             ",\"overflows\":%" PRIuFAST64 ",\"refusals\":%" PRIuFAST64 "}\n",
             atomic_load(&consumer.unrecorded), atomic_load(&consumer.malformed),
             atomic_load(&consumer.overflows), atomic_load(&refusals));
    static answer out;
    pthread_mutex_lock(&answer_lock);
    out.length = 0;
    put(&out, text);
    write_answer(&out);
    pthread_mutex_unlock(&answer_lock);
}

static void stop(void) {
    pthread_mutex_lock(&go_lock);
    if (!atomic_load(&is_stopped))
        stop_ns = dw_now_ns();
    atomic_store(&is_stopped, true);
    pthread_cond_broadcast(&go_changed);
    pthread_mutex_unlock(&go_lock);
    (void)!write(stop_event, &(uint64_t){1}, sizeof(uint64_t));
}

void dw_fail(const char *format, ...) {
    if (atomic_exchange(&has_failed, true))
        return;
    va_list arguments;
    va_start(arguments, format);
    say_text("error", format, arguments);
    va_end(arguments);
    stop();
}

void dw_warn(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say_text("warning", format, arguments);
    va_end(arguments);
}

static bool is_in_plan(const char *setting) {
    return (!strcmp(setting, "priority") && plan.priority >= 0) ||
           (!strcmp(setting, "dscp") && plan.dscp >= 0) ||
           (!strcmp(setting, "socket-priority") && plan.socket_priority >= 0) ||
           (!strcmp(setting, "deadline") && plan.deadline_ns > 0) ||
           (!strcmp(setting, "reliability") && plan.reliability != DW_RELIABILITY_UNSET) ||
           (!strcmp(setting, "history") && plan.history != DW_HISTORY_UNSET) ||
           (!strcmp(setting, "idl-type") && plan.idl_type) || (!strcmp(setting, "locked-memory") && lock_memory) ||
           (!strcmp(setting, "receive-buffer") && plan.receive_buffer_bytes > 0);
}

static bool is_listed(const char *const names[], unsigned count, const char *name) {
    for (unsigned i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

void dw_honoured(const char *setting) {
    pthread_mutex_lock(&answer_lock);
    if (is_in_plan(setting) && honoured_count < SETTINGS_MAX &&
        !is_listed(honoured, honoured_count, setting))
        honoured[honoured_count++] = setting;
    pthread_mutex_unlock(&answer_lock);
}

void dw_ignored(const char *setting) {
    pthread_mutex_lock(&answer_lock);
    if (is_in_plan(setting) && ignored_count < SETTINGS_MAX &&
        !is_listed(ignored, ignored_count, setting))
        ignored[ignored_count++] = setting;
    pthread_mutex_unlock(&answer_lock);
}

void dw_announce(const char *endpoint, const char *listening) {
    if (endpoint && strlen(endpoint) >= sizeof own_endpoint) {
        dw_fail("The endpoint of %s is longer than %d octets.", carrier->name, DW_ENDPOINT_MAX - 1);
        return;
    }
    snprintf(own_endpoint, sizeof own_endpoint, "%s", endpoint ? endpoint : "");
    snprintf(own_listening, sizeof own_listening, "%s", listening ? listening : "");
    /* A broker runs until the end, so that its answer cannot wait for its return. */
    if (plan.role == DW_BROKER && !atomic_load(&has_failed))
        say_ready();
}

int64_t dw_linger_ns(void) {
    pthread_mutex_lock(&go_lock);
    int64_t rest_ns = dw_stopped() ? stop_ns + LINGER_MAX_NS - dw_now_ns() : LINGER_MAX_NS;
    pthread_mutex_unlock(&go_lock);
    return rest_ns > 0 ? rest_ns : 0;
}

bool dw_stopped(void) { return atomic_load_explicit(&is_stopped, memory_order_relaxed); }

bool dw_lost_early(void) {
    poll(&(struct pollfd){.fd = stop_event, .events = POLLIN}, 1, 1000);
    return !dw_stopped();
}

int dw_stop_fd(void) { return stop_event; }

/* ---- Standard input ---- */

/* Reads lines by `read`: a reader thread that blocks in stdio would block `exit`. */
static char input[DW_LINE_MAX];
static size_t input_from, input_to;

/* Returns the next line without its end, or null at the end of input or if the line is too long. */
static char *read_line(void) {
    for (;;) {
        char *from = input + input_from;
        char *end = memchr(from, '\n', input_to - input_from);
        if (end) {
            *end = '\0';
            input_from = (size_t)(end - input) + 1;
            return from;
        }
        memmove(input, from, input_to - input_from);
        input_to -= input_from;
        input_from = 0;
        if (input_to == sizeof input) {
            dw_fail("A line of the plan is longer than %d octets.", DW_LINE_MAX);
            return NULL;
        }
        ssize_t size = read(STDIN_FILENO, input + input_to, sizeof input - input_to);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return NULL;
        input_to += (size_t)size;
    }
}

static const char *copy(const char *text) {
    char *copied = strdup(text);
    if (!copied)
        dw_fail("There is not enough memory for the plan.");
    return copied;
}

/* Reads an integer that is the whole text. */
static bool read_number(const char *key, const char *text, int64_t low, int64_t high, int64_t *number) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < low || value > high) {
        dw_fail("The plan's `%s` is `%s`; it must be a number from %" PRId64 " to %" PRId64 ".", key, text,
                low, high);
        return false;
    }
    *number = value;
    return true;
}

/* A key whose value is a number. */
typedef struct number_key {
    const char *key;
    int64_t low, high;
    enum { TO_SIZE, TO_U64, TO_I64, TO_UNSIGNED, TO_INT, TO_BOOL } kind;
    void *to;
} number_key;

static const number_key NUMBER_KEYS[] = {
    {"size-bytes", 0, DW_SIZE_BYTES_MAX, TO_SIZE, &plan.size_bytes},
    {"sequence-at", 0, DW_SIZE_BYTES_MAX, TO_SIZE, &plan.sequence_at},
    {"sequence-size", 1, 8, TO_SIZE, &plan.sequence_size},
    {"records-at", 0, INT32_MAX, TO_U64, &records_at},
    {"slots", 1, DW_DESTINATIONS_MAX, TO_UNSIGNED, &plan.slots},
    {"capacity", 0, MESSAGES_MAX * 2, TO_U64, &plan.capacity},
    {"messages", 0, MESSAGES_MAX, TO_U64, &plan.messages},
    {"deadline-ns", 0, INT64_MAX, TO_I64, &plan.deadline_ns},
    {"gap-ns", 0, INT64_MAX, TO_I64, &plan.gap_ns},
    {"handle-for-ns", 0, INT64_MAX, TO_I64, &plan.handle_for_ns},
    {"measure", 0, 1, TO_BOOL, &plan.measure},
    {"lock-memory", 0, 1, TO_BOOL, &lock_memory},
    {"priority", 0, 32767, TO_INT, &plan.priority},
    {"dscp", 0, 63, TO_INT, &plan.dscp},
    {"receive-buffer-bytes", 0, INT32_MAX, TO_INT, &plan.receive_buffer_bytes},
    {"socket-priority", 0, INT32_MAX, TO_INT, &plan.socket_priority},
};

static void store_number(const number_key *key, int64_t number) {
    switch (key->kind) {
    case TO_SIZE: *(size_t *)key->to = (size_t)number; break;
    case TO_U64: *(uint64_t *)key->to = (uint64_t)number; break;
    case TO_I64: *(int64_t *)key->to = number; break;
    case TO_UNSIGNED: *(unsigned *)key->to = (unsigned)number; break;
    case TO_INT: *(int *)key->to = (int)number; break;
    case TO_BOOL: *(bool *)key->to = number != 0; break;
    }
}

static const struct text_key {
    const char *key;
    const char **to;
} TEXT_KEYS[] = {
    {"flow", &plan.flow},         {"topic", &plan.topic},       {"address", &plan.address},
    {"body", &body_path},         {"dues", &dues_path},         {"records", &records_path},
    {"broker", &plan.broker},     {"idl-file", &plan.idl_file}, {"idl-type", &plan.idl_type},
    {"idl-sequence-member", &plan.idl_sequence_member},
};

/* Reads `INDEX HOST ENDPOINT`. */
static void read_destination(char *value) {
    char *rest = NULL;
    char *index_text = strtok_r(value, " ", &rest);
    char *host = strtok_r(NULL, " ", &rest);
    char *endpoint = strtok_r(NULL, "", &rest);
    int64_t index;
    if (!index_text || !host || !endpoint) {
        dw_fail("A `destination` line of the plan is not `INDEX HOST ENDPOINT`.");
        return;
    }
    if (!read_number("destination", index_text, 0, DW_DESTINATIONS_MAX - 1, &index))
        return;
    destinations[index] = (dw_destination){copy(host), copy(endpoint)};
    destination_is_given[index] = true;
    if (plan.destination_count <= index)
        plan.destination_count = (unsigned)index + 1;
}

static void read_choice(const char *key, const char *value) {
    int64_t depth;
    if (!strcmp(key, "role") && !strcmp(value, "supplier"))
        plan.role = DW_SUPPLIER;
    else if (!strcmp(key, "role") && !strcmp(value, "consumer"))
        plan.role = DW_CONSUMER;
    else if (!strcmp(key, "role") && !strcmp(value, "broker"))
        plan.role = DW_BROKER;
    else if (!strcmp(key, "sequence-order") && !strcmp(value, "big"))
        plan.sequence_is_big = true;
    else if (!strcmp(key, "sequence-order") && !strcmp(value, "little"))
        plan.sequence_is_big = false;
    else if (!strcmp(key, "reliability") && !strcmp(value, "reliable"))
        plan.reliability = DW_RELIABLE;
    else if (!strcmp(key, "reliability") && !strcmp(value, "best-effort"))
        plan.reliability = DW_BEST_EFFORT;
    else if (!strcmp(key, "history") && !strcmp(value, "keep-all"))
        plan.history = DW_KEEP_ALL;
    else if (!strcmp(key, "history") && !strncmp(value, "keep-last ", 10)) {
        if (read_number("history keep-last", value + 10, 1, INT32_MAX, &depth)) {
            plan.history = DW_KEEP_LAST;
            plan.history_depth = (unsigned)depth;
        }
    } else
        dw_fail("The plan's `%s` has the unknown value `%s`.", key, value);
}

static void read_key(const char *key, char *value) {
    for (size_t i = 0; i < sizeof NUMBER_KEYS / sizeof *NUMBER_KEYS; i++) {
        int64_t number;
        if (strcmp(key, NUMBER_KEYS[i].key))
            continue;
        if (read_number(key, value, NUMBER_KEYS[i].low, NUMBER_KEYS[i].high, &number))
            store_number(&NUMBER_KEYS[i], number);
        return;
    }
    for (size_t i = 0; i < sizeof TEXT_KEYS / sizeof *TEXT_KEYS; i++)
        if (!strcmp(key, TEXT_KEYS[i].key)) {
            *TEXT_KEYS[i].to = copy(value);
            return;
        }
    if (!strcmp(key, "destination"))
        read_destination(value);
    else if (!strcmp(key, "idl-include")) {
        if (plan.idl_include_count == DW_IDL_INCLUDES_MAX)
            dw_fail("The plan has more than %d `idl-include` lines.", DW_IDL_INCLUDES_MAX);
        else
            plan.idl_includes[plan.idl_include_count++] = copy(value);
    }
    else if (!strcmp(key, "role") || !strcmp(key, "sequence-order") || !strcmp(key, "reliability") ||
             !strcmp(key, "history"))
        read_choice(key, value);
    /* Other keys are those of a later version. */
}

/* Checks what the rest of the library relies on. */
static void check_plan(bool has_role) {
    bool is_broker = plan.role == DW_BROKER;
    if (!has_role)
        dw_fail("The plan has no `role`.");
    else if (!plan.topic || !plan.flow || !plan.address)
        dw_fail("The plan lacks `flow`, `topic` or `address`.");
    else if (!is_broker && (!body_path || !records_path || !plan.sequence_size))
        dw_fail("The plan lacks `body`, `records` or `sequence-size`.");
    else if (!is_broker && plan.sequence_at + plan.sequence_size > plan.size_bytes)
        dw_fail("A message of %zu octets has no room for its sequence number.", plan.size_bytes);
    else if (records_at % 8)
        dw_fail("The plan's `records-at` must be a multiple of 8.");
    if (plan.role != DW_SUPPLIER)
        return;
    if (!dues_path)
        dw_fail("The plan lacks `dues`.");
    if (plan.capacity < plan.messages)
        dw_fail("The plan has records for %" PRIu64 " of %" PRIu64 " messages.", plan.capacity, plan.messages);
    if (plan.destination_count == 0 || (plan.slots != 1 && plan.slots != plan.destination_count))
        dw_fail("The plan has %u slots for %u destinations.", plan.slots, plan.destination_count);
    for (unsigned i = 0; i < plan.destination_count; i++)
        if (!destination_is_given[i])
            dw_fail("The plan has no destination %u.", i);
}

static void read_plan(void) {
    bool has_role = false, is_first = true;
    plan.priority = plan.dscp = plan.socket_priority = -1;
    plan.slots = 1;
    plan.destinations = destinations;
    while (!atomic_load(&has_failed)) {
        char *line = read_line();
        if (!line) {
            dw_fail("Standard input ended before the plan. This program is started by `deckwatch run`.");
            return;
        }
        if (!*line)
            break;
        char *value = strchr(line, ' ');
        if (value)
            *value++ = '\0';
        else
            value = line + strlen(line);
        int64_t version;
        if (is_first) {
            if (strcmp(line, "deckwatch-carrier"))
                dw_fail("Standard input is not a plan. This program is started by `deckwatch run`.");
            else if (read_number(line, value, 0, INT32_MAX, &version) && version != PROTOCOL)
                dw_fail("Deckwatch uses version %" PRId64 " of the carrier protocol; %s was built for version %d. "
                        "Build it again with `./dev adapters`.",
                        version, carrier->name, PROTOCOL);
            is_first = false;
            continue;
        }
        has_role |= !strcmp(line, "role");
        read_key(line, value);
    }
    if (!atomic_load(&has_failed))
        check_plan(has_role);
    if (body_path && strrchr(body_path, '/'))
        plan.scratch = strndup(body_path, (size_t)(strrchr(body_path, '/') - body_path));
    plan.send_bound_ns = plan.deadline_ns ? plan.deadline_ns : SEND_BOUND_MAX_NS;
    if (plan.send_bound_ns < SEND_BOUND_MIN_NS)
        plan.send_bound_ns = SEND_BOUND_MIN_NS;
    if (plan.send_bound_ns > SEND_BOUND_MAX_NS)
        plan.send_bound_ns = SEND_BOUND_MAX_NS;
}

/* Reads the commands after the plan. */
static void *read_commands(void *unused) {
    (void)unused;
    for (char *line; (line = read_line());) {
        int64_t number;
        if (!strcmp(line, "stop"))
            break;
        if (!strncmp(line, "go ", 3) && read_number("go", line + 3, 1, INT64_MAX, &number)) {
            pthread_mutex_lock(&go_lock);
            start_ns = number;
            is_started = true;
            pthread_cond_broadcast(&go_changed);
            pthread_mutex_unlock(&go_lock);
        }
    }
    stop();
    return NULL;
}

/* ---- Files ---- */

/* Maps a whole file. Fails if it has fewer than `size` octets. */
static void *map_file(const char *path, uint64_t size, bool shared) {
    int file = open(path, (shared ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status)) {
        dw_fail("%s cannot be opened: %s.", path, strerror(errno));
        if (file >= 0)
            close(file);
        return NULL;
    }
    if ((uint64_t)status.st_size < size) {
        dw_fail("%s has %jd octets; the plan says %" PRIu64 ".", path, (intmax_t)status.st_size, size);
        close(file);
        return NULL;
    }
    void *at = mmap(NULL, size ? size : 1, PROT_READ | (shared ? PROT_WRITE : 0),
                    (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_POPULATE, file, 0);
    close(file);
    if (at == MAP_FAILED) {
        dw_fail("%s cannot be mapped: %s.", path, strerror(errno));
        return NULL;
    }
    return at;
}

static bool map_files(void) {
    uint64_t record_size = plan.role == DW_SUPPLIER ? sizeof(supplier_record) : sizeof(consumer_record);
    uint64_t count = plan.role == DW_SUPPLIER ? plan.slots * plan.capacity : plan.capacity;
    char *mapped = map_file(records_path, records_at + count * record_size, true);
    if (!mapped)
        return false;
    records = mapped + records_at;
    consumer.records = records;
    plan.body = map_file(body_path, plan.size_bytes, false);
    if (!plan.body)
        return false;
    if (plan.role == DW_SUPPLIER)
        dues = map_file(dues_path, plan.messages * sizeof *dues, false);
    return plan.role != DW_SUPPLIER || dues;
}

/* ---- Supplier ---- */

int64_t dw_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t dw_sequence(const dw_plan *of, const uint8_t *octets) {
    uint64_t sequence = 0;
    for (size_t i = 0; i < of->sequence_size; i++)
        sequence = sequence << 8 |
                   octets[of->sequence_at + (of->sequence_is_big ? i : of->sequence_size - 1 - i)];
    return sequence;
}

void dw_set_sequence(const dw_plan *of, uint8_t *octets, uint64_t sequence) {
    for (size_t i = 0; i < of->sequence_size; i++, sequence >>= 8)
        octets[of->sequence_at + (of->sequence_is_big ? of->sequence_size - 1 - i : i)] = (uint8_t)sequence;
}

/* Sleeps until `due_ns`. Returns false if the part must finish. */
static bool sleep_until(int64_t due_ns) {
    while (!dw_stopped()) {
        int64_t now_ns = dw_now_ns();
        if (now_ns >= due_ns)
            return true;
        int64_t look_ns = now_ns + DW_STOP_LOOK_MS * INT64_C(1000000);
        int64_t until_ns = due_ns < look_ns ? due_ns : look_ns;
        struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return false;
}

/* Sends the whole schedule to one slot. */
static void *supply(void *argument) {
    slot *own = argument;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
    pthread_mutex_lock(&go_lock);
    while (!is_started && !dw_stopped())
        pthread_cond_wait(&go_changed, &go_lock);
    int64_t from_ns = start_ns;
    pthread_mutex_unlock(&go_lock);
    for (uint64_t sequence = 0; sequence < plan.messages && sleep_until(from_ns + dues[sequence]); sequence++) {
        supplier_record *record = &own->records[sequence];
        dw_set_sequence(&plan, own->octets, sequence);
        int64_t sent_ns = dw_now_ns();
        int error = carrier->send(own->sender, sequence, own->octets, plan.size_bytes);
        int64_t returned_ns = dw_now_ns();
        record->error = (uint32_t)error;
        record->sent_ns = sent_ns;
        atomic_store_explicit(&record->returned_ns, returned_ns, memory_order_release);
    }
    return NULL;
}

static bool connect_slots(void) {
    slots = calloc(plan.slots, sizeof *slots);
    for (unsigned i = 0; i < plan.slots; i++) {
        slot *own = slots ? &slots[i] : NULL;
        if (!own || !(own->octets = malloc(plan.size_bytes))) {
            dw_fail("There is not enough memory for %u messages of %zu octets.", plan.slots, plan.size_bytes);
            return false;
        }
        memcpy(own->octets, plan.body, plan.size_bytes);
        own->records = (supplier_record *)records + i * plan.capacity;
        own->sender = carrier->connect(&plan, i);
        if (!own->sender && !dw_stopped())
            dw_fail("%s could not connect.", carrier->name);
        if (!own->sender || atomic_load(&has_failed))
            return false;
    }
    return true;
}

static void run_supplier(void) {
    if (!connect_slots()) {
        if (!atomic_load(&has_failed))
            say_done();
        return;
    }
    unsigned started = 0;
    for (; started < plan.slots; started++)
        if (pthread_create(&slots[started].thread, NULL, supply, &slots[started])) {
            dw_fail("A thread cannot be started: %s.", strerror(errno));
            break;
        }
    if (!atomic_load(&has_failed))
        say_ready();
    for (unsigned i = 0; i < started; i++)
        pthread_join(slots[i].thread, NULL);
    if (atomic_load(&has_failed))
        return;
    say_done();
    /* Messages may still be queued: the connections stay until Deckwatch has seen them arrive, or has waited enough. */
    pthread_mutex_lock(&go_lock);
    while (!dw_stopped())
        pthread_cond_wait(&go_changed, &go_lock);
    pthread_mutex_unlock(&go_lock);
    for (unsigned i = 0; carrier->disconnect && i < plan.slots; i++)
        carrier->disconnect(slots[i].sender);
}

/* ---- Consumer ---- */

static int64_t thread_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Keeps the processor busy until this thread has used so much processor time. */
static void work_for(int64_t processor_ns) {
    int64_t end_ns = thread_cpu_ns() + processor_ns;
    volatile uint64_t sum = 0;
    while (thread_cpu_ns() < end_ns)
        for (uint64_t term = 0; term < 64; term++)
            sum += term;
}

static void record(dw_consumer *to, uint64_t sequence, int64_t received_ns) {
    if (sequence >= plan.messages) {
        dw_malformed(to, 1);
        return;
    }
    int64_t before_ns = plan.measure ? thread_cpu_ns() : 0;
    if (plan.handle_for_ns)
        work_for(plan.handle_for_ns);
    int64_t execution_ns = plan.measure ? thread_cpu_ns() - before_ns : 0;
    int64_t handled_ns = dw_now_ns();
    uint64_t place = atomic_fetch_add_explicit(&to->arrivals, 1, memory_order_relaxed);
    if (place >= plan.capacity) {
        atomic_fetch_add_explicit(&to->unrecorded, 1, memory_order_relaxed);
        return;
    }
    consumer_record *own = &to->records[place];
    own->sequence = sequence;
    own->handled_ns = handled_ns;
    /* Zero means that it was not measured. */
    own->execution_ns = plan.measure && execution_ns < 1 ? 1 : execution_ns;
    atomic_store_explicit(&own->received_ns, received_ns, memory_order_release);
}

void dw_arrived(dw_consumer *to, const uint8_t *octets, size_t size_bytes) {
    if (size_bytes != plan.size_bytes) {
        dw_malformed(to, 1);
        return;
    }
    uint64_t sequence = dw_sequence(&plan, octets);
    record(to, sequence, dw_now_ns());
}

void dw_arrived_sequence(dw_consumer *to, uint64_t sequence) { record(to, sequence, dw_now_ns()); }

void dw_malformed(dw_consumer *to, uint64_t count) { atomic_fetch_add(&to->malformed, count); }

void dw_overflows(dw_consumer *to, uint64_t count) { atomic_fetch_add(&to->overflows, count); }

void dw_refusals(uint64_t count) { atomic_fetch_add(&refusals, count); }

static void run_consumer(void) {
    void *receiver = carrier->listen(&plan, &consumer);
    if (!receiver && !dw_stopped())
        dw_fail("%s could not listen.", carrier->name);
    if (atomic_load(&has_failed))
        return;
    if (receiver) {
        say_ready();
        carrier->receive(receiver);
        if (!dw_stopped())
            dw_fail("%s no longer receives.", carrier->name);
        if (carrier->close)
            carrier->close(receiver);
    }
    if (!atomic_load(&has_failed))
        say_done();
}

static void run_broker(void) {
    if (!carrier->broker)
        dw_fail("%s has no broker.", carrier->name);
    else if (carrier->broker(&plan))
        dw_fail("The broker of %s ended.", carrier->name);
    else if (!atomic_load(&has_failed))
        say_done();
}

/* Locks the memory if the plan says so: `exec` does not inherit it. Returns false with `errno`. */
static bool lock_if_asked(void) {
    if (lock_memory && mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
        return false;
    dw_honoured("locked-memory");
    return true;
}

int dw_main(const dw_carrier *table) {
    carrier = table;
    stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop_event < 0) {
        dw_fail("An event descriptor cannot be made: %s.", strerror(errno));
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    /* The threads of the middleware inherit the slack. */
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
    read_plan();
    if (atomic_load(&has_failed))
        return 1;
    if (!lock_if_asked())
        dw_warn("The memory of %s cannot be locked: %s.", carrier->name, strerror(errno));
    if (plan.role != DW_BROKER && !map_files())
        return 1;
    pthread_t commands;
    if (pthread_create(&commands, NULL, read_commands, NULL)) {
        dw_fail("A thread cannot be started: %s.", strerror(errno));
        return 1;
    }
    pthread_detach(commands);
    if (plan.role == DW_SUPPLIER)
        run_supplier();
    else if (plan.role == DW_CONSUMER)
        run_consumer();
    else
        run_broker();
    return atomic_load(&has_failed) ? 1 : 0;
}

/* ---- Help for adapters ---- */

bool dw_split_endpoint(const char *endpoint, char *host, size_t host_size, unsigned *port) {
    const char *from = strstr(endpoint, "://");
    from = from ? from + 3 : endpoint;
    const char *colon = strrchr(from, ':');
    if (!colon || colon == from)
        return false;
    char *end;
    errno = 0;
    unsigned long number = strtoul(colon + 1, &end, 10);
    if (errno || end == colon + 1 || *end || number == 0 || number > 65535)
        return false;
    size_t size = (size_t)(colon - from);
    /* The address of a version 6 endpoint is in brackets. */
    if (*from == '[' && size > 2 && colon[-1] == ']') {
        from++;
        size -= 2;
    }
    if (size >= host_size)
        return false;
    memcpy(host, from, size);
    host[size] = '\0';
    *port = (unsigned)number;
    return true;
}

/* Converts a numeric address. Returns false after an error that is the caller's. */
static bool socket_address(const char *address, unsigned port, struct sockaddr_storage *to, socklen_t *size) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found;
    char service[8];
    snprintf(service, sizeof service, "%u", port & 0xFFFF);
    if (getaddrinfo(address, service, &hints, &found))
        return false;
    memcpy(to, found->ai_addr, found->ai_addrlen);
    *size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

/* Returns a TCP port that is free on this address now, or 0. */
static unsigned free_port(const char *address) {
    struct sockaddr_storage at;
    socklen_t size;
    if (!socket_address(address, 0, &at, &size))
        return 0;
    int server = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned port = 0;
    if (server >= 0 && !bind(server, (struct sockaddr *)&at, size) &&
        !getsockname(server, (struct sockaddr *)&at, &size))
        port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                              : ((struct sockaddr_in *)&at)->sin_port);
    if (server >= 0)
        close(server);
    return port;
}

/* Runs in the new process: becomes the program, or writes its errno to `report`. */
static void become(const char *const argv[], int keep_fd, int report, pid_t parent) {
    int nothing = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
    signal(SIGPIPE, SIG_DFL);
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (keep_fd >= 0)
        fcntl(keep_fd, F_SETFD, 0);
    /* Debian has servers in directories that are not in the path of ordinary users. */
    char path[PATH_SIZE_MAX];
    const char *own = getenv("PATH");
    snprintf(path, sizeof path, "%s:/usr/local/sbin:/usr/sbin:/sbin", own ? own : "/usr/bin:/bin");
    setenv("PATH", path, 1);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    (void)!write(report, &errno, sizeof errno);
    _exit(1);
}

pid_t dw_spawn(const char *const argv[], int keep_fd) {
    int report[2], error = 0;
    pid_t parent = getpid();
    if (pipe2(report, O_CLOEXEC))
        return -1;
    pid_t child = fork();
    if (child == 0)
        become(argv, keep_fd, report[1], parent);
    close(report[1]);
    if (child < 0)
        error = errno;
    else if (read(report[0], &error, sizeof error) != sizeof error)
        error = 0;
    close(report[0]);
    if (error == 0)
        return child;
    if (child > 0)
        waitpid(child, NULL, 0);
    errno = error;
    return -1;
}

/* Waits until a TCP server answers on this address. Returns false if its process ends, or at `bound_ns`. */
static bool wait_tcp(const char *address, unsigned port, pid_t server, int64_t bound_ns) {
    struct sockaddr_storage at;
    socklen_t size;
    if (!socket_address(address, port, &at, &size))
        return false;
    for (int64_t end_ns = dw_now_ns() + bound_ns; !dw_stopped() && dw_now_ns() < end_ns;) {
        int client = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool answers = client >= 0 && !connect(client, (struct sockaddr *)&at, size);
        if (client >= 0)
            close(client);
        if (answers)
            return true;
        if (waitpid(server, NULL, WNOHANG) == server)
            return false;
        sleep_until(dw_now_ns() + 10000000);
    }
    return false;
}

/* Ends a program, if need be by force. */
static void end_process(pid_t process) {
    kill(process, SIGTERM);
    for (int64_t end_ns = dw_now_ns() + 1000000000; dw_now_ns() < end_ns;) {
        if (waitpid(process, NULL, WNOHANG) != 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
}

/* Starts the broker. Returns its process and its port, or -1 after `dw_fail`. */
static pid_t start_broker(const dw_plan *of, pid_t (*start)(const dw_plan *, unsigned), unsigned *port) {
    /* Another program may take the free port first. */
    for (unsigned attempt = 0; attempt < BROKER_ATTEMPTS && !dw_stopped(); attempt++) {
        *port = free_port(of->address);
        pid_t process = start(of, *port);
        if (process < 0) {
            dw_fail("The broker of %s cannot be started: %s. Its package is named in carrier.toml.", carrier->name,
                    strerror(errno));
            return -1;
        }
        if (wait_tcp(of->address, *port, process, BROKER_BOUND_NS))
            return process;
        end_process(process);
    }
    if (!dw_stopped())
        dw_fail("The broker of %s does not answer on %s. Its messages are on standard error.", carrier->name,
                of->address);
    return -1;
}

int dw_serve(const dw_plan *of, pid_t (*start)(const dw_plan *, unsigned)) {
    char endpoint[128];
    unsigned port;
    pid_t process = start_broker(of, start, &port);
    if (process < 0)
        return dw_stopped() ? 0 : -1;
    snprintf(endpoint, sizeof endpoint, strchr(of->address, ':') ? "[%s]:%u" : "%s:%u", of->address, port);
    dw_announce(endpoint, endpoint);
    while (!dw_stopped()) {
        if (waitpid(process, NULL, WNOHANG) == process) {
            dw_fail("The broker of %s ended. Its messages are on standard error.", carrier->name);
            return -1;
        }
        poll(&(struct pollfd){.fd = stop_event, .events = POLLIN}, 1, DW_STOP_LOOK_MS);
    }
    end_process(process);
    return 0;
}

int dw_memory_file(const char *text, char *path, size_t path_size) {
    int memory = memfd_create("deckwatch", MFD_CLOEXEC);
    if (memory < 0)
        return -1;
    snprintf(path, path_size, "/proc/self/fd/%d", memory);
    size_t size = strlen(text);
    if (write(memory, text, size) == (ssize_t)size && !lseek(memory, 0, SEEK_SET))
        return memory;
    int error = errno;
    close(memory);
    errno = error;
    return -1;
}

int dw_mark_socket(const dw_plan *of, int socket) {
    int error = 0, family = 0;
    socklen_t size = sizeof family;
    getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size);
    if (of->dscp >= 0) {
        int octet = of->dscp << 2;
        /* An IPv6 socket may carry IPv4, whose packets take the other mark. */
        if ((family == AF_INET6 && setsockopt(socket, IPPROTO_IPV6, IPV6_TCLASS, &octet, sizeof octet)) ||
            setsockopt(socket, IPPROTO_IP, IP_TOS, &octet, sizeof octet))
            error = errno;
        else
            dw_honoured("dscp");
    }
    if (of->socket_priority >= 0) {
        if (setsockopt(socket, SOL_SOCKET, SO_PRIORITY, &of->socket_priority, sizeof of->socket_priority))
            error = errno;
        else
            dw_honoured("socket-priority");
    }
    return error;
}
