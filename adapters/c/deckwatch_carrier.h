/*
 * deckwatch_carrier.h: a carrier of Deckwatch in C or C++.
 *
 * An adapter gives `dw_main` a table of functions that move messages through one middleware. This library does the
 * rest: it reads the plan, paces the messages, stamps them, writes the records and answers. See adapters/README.md.
 *
 * The library needs C11 and POSIX threads. It allocates nothing between `go` and the end of the stream.
 */
#ifndef DECKWATCH_CARRIER_H
#define DECKWATCH_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Destinations of one stream, octets of one message, octets of one line of the plan. */
#define DW_DESTINATIONS_MAX 256
#define DW_SIZE_BYTES_MAX (1u << 20)
#define DW_LINE_MAX 65536
#define DW_IDL_INCLUDES_MAX 32
/* Octets of an endpoint that an adapter announces, with the final zero. */
#define DW_ENDPOINT_MAX 4096
/* The longest time between two looks at `dw_stopped`. */
#define DW_STOP_LOOK_MS 100

/* What `send` returns. The value is written to the message's record. */
enum {
    DW_SENT = 0,
    DW_REFUSED = 0x00010000, /* the middleware refused the message; an errno may be added: DW_REFUSED | EMSGSIZE */
    DW_BACKLOG_FULL = 0x00020000, /* the peer does not read, and all buffers are full */
    DW_DISCONNECTED = 0x00030000, /* the connection is lost */
    DW_TIMED_OUT = 0x00040000     /* the middleware did not accept the message in `send_bound_ns` */
};

typedef enum dw_role { DW_SUPPLIER, DW_CONSUMER, DW_BROKER } dw_role;
typedef enum dw_reliability { DW_RELIABILITY_UNSET, DW_RELIABLE, DW_BEST_EFFORT } dw_reliability;
typedef enum dw_history { DW_HISTORY_UNSET, DW_KEEP_ALL, DW_KEEP_LAST } dw_history;

/* A consumer, as the supplier sees it. */
typedef struct dw_destination {
    const char *host;     /* its name in the mission */
    const char *endpoint; /* what it announced; "-" if nothing */
} dw_destination;

/* The plan of this part. It does not change and lives until the process ends. */
typedef struct dw_plan {
    dw_role role;
    const char *flow;    /* name of the flow, for messages to the user */
    const char *topic;   /* name that no other stream has: the topic, the subject or the service */
    const char *address; /* address of this part's host: bind to it, send from it */

    const char *scratch; /* directory that Deckwatch removes after the run; null for a broker */
    int64_t gap_ns;      /* the longest time between two messages that are due; 0 if it is unknown */

    size_t size_bytes;   /* octets of one message */
    const uint8_t *body; /* a message with sequence number 0; null for a broker */
    size_t sequence_at;  /* offset of the sequence number in a message */
    size_t sequence_size;
    bool sequence_is_big; /* byte order of the sequence number */

    unsigned slots;    /* supplier: calls of `connect`; 1 if one send serves all destinations */
    uint64_t capacity; /* supplier: records of a slot; consumer: all records */
    uint64_t messages; /* messages of the stream */

    int64_t deadline_ns;   /* deadline of the flow; 0 if it has none */
    int64_t send_bound_ns; /* the longest time that one `send` may block: the deadline, from 1 ms to 5 s */
    int64_t handle_for_ns; /* consumer: processor time that `dw_arrived` uses for each message */
    bool measure;          /* consumer: `dw_arrived` measures processor time */

    unsigned destination_count; /* supplier */
    const dw_destination *destinations;
    const char *broker; /* endpoint that the broker announced, or null */

    int priority;        /* CORBA priority of the flow, 0 to 32767, or -1 */
    int dscp;            /* 0 to 63, or -1 */
    int socket_priority; /* SO_PRIORITY, or -1 */
    dw_reliability reliability;
    dw_history history;
    unsigned history_depth; /* with DW_KEEP_LAST */
    int receive_buffer_bytes; /* consumer: octets of the socket's receive buffer, or 0 */

    /* Null if the flow's messages are plain octets. Otherwise `body` is the CDR encoding of a value, little-endian. */
    const char *idl_file;
    const char *idl_type;
    const char *idl_sequence_member;
    unsigned idl_include_count; /* directories for #include */
    const char *idl_includes[DW_IDL_INCLUDES_MAX];
} dw_plan;

/* The consumer's records. An adapter only passes the pointer on. */
typedef struct dw_consumer dw_consumer;

/*
 * What an adapter implements. All functions but `name` may be null if the carrier has no use for them; `connect`,
 * `send`, `listen` and `receive` are required.
 */
typedef struct dw_carrier {
    const char *name;

    /*
     * Supplier. Called once for each slot, one after the other, before the stream starts. With `slots` 1 the sender
     * serves all destinations; else slot N serves destination N. Returns when the consumers are connected, or returns
     * null after `dw_fail`.
     */
    void *(*connect)(const dw_plan *plan, unsigned slot);
    /*
     * Sends one message, with its sequence number in `octets`. Each slot has a thread of its own. Returns DW_SENT or
     * an error, after `send_bound_ns` at the latest. The octets change after the return.
     */
    int (*send)(void *sender, uint64_t sequence, const uint8_t *octets, size_t size_bytes);
    /* Called at `stop`, which comes right after the last message. Waits for queued messages, for `dw_linger_ns` at
     * most. */
    void (*disconnect)(void *sender);

    /* Consumer. Binds or subscribes, then calls `dw_announce`. Returns null after `dw_fail`. */
    void *(*listen)(const dw_plan *plan, dw_consumer *consumer);
    /* Receives until `dw_stopped`. Calls `dw_arrived` for each message. Looks at `dw_stopped` each DW_STOP_LOOK_MS. */
    void (*receive)(void *receiver);
    void (*close)(void *receiver);

    /* Starts the broker, calls `dw_announce`, returns 0 when `dw_stopped`; returns -1 after `dw_fail`. */
    int (*broker)(const dw_plan *plan);
} dw_carrier;

/* Plays the part that standard input asks for. Returns the exit status of `main`. */
int dw_main(const dw_carrier *carrier);

/*
 * Call these before `connect`, `listen` or `broker` returns.
 */
/* The middleware implements this setting of the plan: "priority", "dscp", "socket-priority", "deadline",
 * "reliability", "history", "idl-type", "locked-memory",
 * "receive-buffer". Settings that the plan does not have are left out of the answer. A deadline counts as
 * implemented if the middleware itself limits the time of a send by it, or reports that it was missed. */
void dw_honoured(const char *setting);
/* The middleware has nothing for this setting. */
void dw_ignored(const char *setting);
/* Announces that this consumer receives, or that this broker runs. `endpoint` reaches the supplier; null if the
 * topic is enough. `listening` is the address and port for the user; null if there is none. */
void dw_announce(const char *endpoint, const char *listening);

/* Reports an error in whole sentences: what failed, and what to do. Only the first one counts. The part then ends. */
void dw_fail(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;
/* Reports a shortcoming to the user; the stream goes on. */
void dw_warn(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

/* Returns true when the part must finish. */
bool dw_stopped(void);
/* Waits a second at most for the end of the part; returns true if it did not come. Call it when a connection is lost:
 * the end of a run stops broker and peers in no order. */
bool dw_lost_early(void);
/* Returns a descriptor that becomes readable when the part must finish. Never read from it. */
int dw_stop_fd(void);

/* Records a message that has just arrived. Reads the clock first, so call it as soon as the message is there. May be
 * called by several threads. */
void dw_arrived(dw_consumer *consumer, const uint8_t *octets, size_t size_bytes);
/* The same, for a message of the flow's IDL type whose number the adapter has read. */
void dw_arrived_sequence(dw_consumer *consumer, uint64_t sequence);
/* Counts arrivals that are no messages of the stream. */
void dw_malformed(dw_consumer *consumer, uint64_t count);
/* Counts messages that the consumer's middleware dropped because its buffers were full. */
void dw_overflows(dw_consumer *consumer, uint64_t count);
/* Counts messages that the network or the peer's host refused after `send` had returned. */
void dw_refusals(uint64_t count);

/* Returns the time in which the supplier's queued messages must have left, from 2 s at `stop` down to 0. */
int64_t dw_linger_ns(void);
/* Returns CLOCK_MONOTONIC in nanoseconds. */
int64_t dw_now_ns(void);
/* Reads the sequence number in the octets of a message, or writes it. */
uint64_t dw_sequence(const dw_plan *plan, const uint8_t *octets);
void dw_set_sequence(const dw_plan *plan, uint8_t *octets, uint64_t sequence);

/* Splits "tcp://10.0.0.1:4711" or "10.0.0.1:4711". Returns false if it is neither. */
bool dw_split_endpoint(const char *endpoint, char *host, size_t host_size, unsigned *port);
/* Starts a program that ends when this process ends; its output goes to standard error. `keep_fd` stays open in it,
 * unless it is -1. Returns its process id, or -1 with `errno`. */
pid_t dw_spawn(const char *const argv[], int keep_fd);
/* The whole `broker` function of a carrier whose broker is a program with one TCP port. `start` starts the program on
 * the part's address and this port; it returns what `dw_spawn` returned. Announces "ADDRESS:PORT". */
int dw_serve(const dw_plan *plan, pid_t (*start)(const dw_plan *plan, unsigned port));
/* Makes a file in memory, such as a broker's configuration, so that a killed part leaves no file. Writes its path to
 * `path`; `dw_spawn` needs the descriptor as `keep_fd`. Returns the descriptor, or -1 with `errno`. */
int dw_memory_file(const char *text, char *path, size_t path_size);
/* Sets IP_TOS by the plan's DSCP and SO_PRIORITY on a socket, and reports both as honoured. Returns 0 or an errno. */
int dw_mark_socket(const dw_plan *plan, int socket);

#ifdef __cplusplus
}
#endif

#endif
