/*
 * ZeroMQ: a PUSH socket for each destination, a PULL socket at each consumer, over TCP.
 *
 * PUB/SUB is not used. A PUB socket drops messages without an error when a subscriber is slow. With
 * ZMQ_XPUB_NODROP, one stopped subscriber holds up the others. PUSH reports a full queue to its own caller only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "deckwatch_carrier.h"

/* Octets that may wait in one socket's queue, and the least and the greatest number of messages for them. */
#define QUEUE_BYTES (8 << 20)
#define QUEUE_MESSAGES_MIN 8
#define QUEUE_MESSAGES_MAX 1000
#define CONNECT_BOUND_NS INT64_C(10000000000)

typedef struct peer {
    void *context;
    void *socket;
    dw_consumer *consumer;
    int flags; /* of zmq_send */
} peer;

static int set(void *socket, int option, int value) { return zmq_setsockopt(socket, option, &value, sizeof value); }

static void close_peer(void *of) {
    peer *closed = of;
    if (!closed->consumer)
        set(closed->socket, ZMQ_LINGER, (int)(dw_linger_ns() / 1000000));
    zmq_close(closed->socket);
    zmq_ctx_term(closed->context); /* waits for queued messages */
    free(closed);
}

static peer *open_peer(const dw_plan *plan, int type) {
    size_t fitting = QUEUE_BYTES / (plan->size_bytes + 1);
    int queue = fitting < QUEUE_MESSAGES_MIN   ? QUEUE_MESSAGES_MIN
                : fitting > QUEUE_MESSAGES_MAX ? QUEUE_MESSAGES_MAX
                                               : (int)fitting;
    peer *made = calloc(1, sizeof *made);
    /* A context for each slot: each has an I/O thread of its own, which inherits the scheduling of the part. */
    if (!made || !(made->context = zmq_ctx_new()) || !(made->socket = zmq_socket(made->context, type)) ||
        set(made->socket, type == ZMQ_PUSH ? ZMQ_SNDHWM : ZMQ_RCVHWM, queue) ||
        set(made->socket, ZMQ_LINGER, 0) || set(made->socket, ZMQ_IMMEDIATE, 1) ||
        set(made->socket, ZMQ_IPV6, strchr(plan->address, ':') != NULL) ||
        (plan->receive_buffer_bytes && set(made->socket, ZMQ_RCVBUF, plan->receive_buffer_bytes)) ||
        (plan->dscp >= 0 && set(made->socket, ZMQ_TOS, plan->dscp << 2))) {
        dw_fail("A ZeroMQ socket cannot be made: %s.", zmq_strerror(zmq_errno()));
        return NULL;
    }
    dw_honoured("dscp");
    dw_honoured("receive-buffer");
    dw_ignored("socket-priority");
    dw_ignored("priority");
    dw_honoured("deadline"); /* ZMQ_SNDTIMEO */
    dw_honoured("reliability");
    if (plan->history == DW_KEEP_ALL)
        dw_honoured("history");
    else
        dw_ignored("history"); /* a full queue refuses the newest message; it never drops the oldest one */
    return made;
}

static void *connect_peer(const dw_plan *plan, unsigned slot) {
    const char *endpoint = plan->destinations[slot].endpoint;
    char host[64], full[256];
    unsigned port;
    peer *made = open_peer(plan, ZMQ_PUSH);
    if (!made)
        return NULL;
    if (!dw_split_endpoint(endpoint, host, sizeof host, &port)) {
        dw_fail("`%s` is no endpoint of ZeroMQ.", endpoint);
        return NULL;
    }
    /* The part before the semicolon is the source address. */
    bool is_v6 = strchr(plan->address, ':') != NULL;
    snprintf(full, sizeof full, is_v6 ? "tcp://[%s]:0;[%s]:%u" : "tcp://%s:0;%s:%u", plan->address, host, port);
    made->flags = plan->reliability == DW_BEST_EFFORT ? ZMQ_DONTWAIT : 0;
    if (set(made->socket, ZMQ_SNDTIMEO, (int)((plan->send_bound_ns + 999999) / 1000000)) ||
        zmq_connect(made->socket, full)) {
        dw_fail("ZeroMQ cannot connect to %s: %s.", endpoint, zmq_strerror(zmq_errno()));
        return NULL;
    }
    /* With ZMQ_IMMEDIATE, the socket takes messages only once it is connected. */
    zmq_pollitem_t item = {.socket = made->socket, .events = ZMQ_POLLOUT};
    for (int64_t end_ns = dw_now_ns() + CONNECT_BOUND_NS; !dw_stopped();) {
        if (zmq_poll(&item, 1, DW_STOP_LOOK_MS) > 0)
            return made;
        if (dw_now_ns() > end_ns) {
            dw_fail("ZeroMQ got no connection to %s. Check that the hosts reach each other.", endpoint);
            break;
        }
    }
    return NULL;
}

static int send_peer(void *sender, uint64_t sequence, const uint8_t *octets, size_t size_bytes) {
    peer *to = sender;
    (void)sequence;
    if (zmq_send(to->socket, octets, size_bytes, to->flags) >= 0)
        return DW_SENT;
    if (zmq_errno() == EAGAIN)
        return to->flags & ZMQ_DONTWAIT ? DW_BACKLOG_FULL : DW_TIMED_OUT;
    return DW_REFUSED | (zmq_errno() & 0xFFFF);
}

static void *listen_peer(const dw_plan *plan, dw_consumer *consumer) {
    peer *made = open_peer(plan, ZMQ_PULL);
    char endpoint[256];
    size_t size = sizeof endpoint;
    if (!made)
        return NULL;
    made->consumer = consumer;
    snprintf(endpoint, sizeof endpoint, strchr(plan->address, ':') ? "tcp://[%s]:*" : "tcp://%s:*", plan->address);
    int64_t message_max = DW_SIZE_BYTES_MAX;
    if (set(made->socket, ZMQ_RCVTIMEO, DW_STOP_LOOK_MS) ||
        zmq_setsockopt(made->socket, ZMQ_MAXMSGSIZE, &message_max, sizeof message_max) ||
        zmq_bind(made->socket, endpoint) || zmq_getsockopt(made->socket, ZMQ_LAST_ENDPOINT, endpoint, &size)) {
        dw_fail("ZeroMQ cannot listen on %s: %s.", plan->address, zmq_strerror(zmq_errno()));
        return NULL;
    }
    dw_announce(endpoint, endpoint + strlen("tcp://"));
    return made;
}

static void receive_peer(void *receiver) {
    peer *from = receiver;
    zmq_msg_t message;
    zmq_msg_init(&message);
    while (!dw_stopped()) {
        if (zmq_msg_recv(&message, from->socket, 0) >= 0)
            dw_arrived(from->consumer, zmq_msg_data(&message), zmq_msg_size(&message));
        else if (zmq_errno() != EAGAIN && zmq_errno() != EINTR) {
            dw_fail("ZeroMQ cannot receive: %s.", zmq_strerror(zmq_errno()));
            break;
        }
    }
    zmq_msg_close(&message);
}

int main(void) {
    static const dw_carrier carrier = {
        .name = "zeromq",
        .connect = connect_peer,
        .send = send_peer,
        .disconnect = close_peer,
        .listen = listen_peer,
        .receive = receive_peer,
        .close = close_peer,
    };
    return dw_main(&carrier);
}
