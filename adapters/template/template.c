/*
 * A carrier over UDP sockets. Copy this directory, give it a new name in carrier.toml and in the Makefile, and replace
 * the socket calls by those of your middleware. `adapters/README.md` describes the rest.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deckwatch_carrier.h"

/* One second of a large flow, so that only a stopped consumer loses messages here. */
#define RECEIVE_BUFFER_BYTES (4 << 20)

/* What `connect` or `listen` makes, and the other functions get back. */
typedef struct peer {
    int socket;
    const dw_plan *plan;
    dw_consumer *consumer;              /* consumer only */
    uint8_t octets[DW_SIZE_BYTES_MAX];  /* a message that arrives */
} peer;

/* Makes a UDP socket with this part's address, so that packets take the network under test. */
static peer *open_peer(const dw_plan *plan) {
    struct sockaddr_in own = {.sin_family = AF_INET};
    peer *made = calloc(1, sizeof *made);
    if (!made || inet_pton(AF_INET, plan->address, &own.sin_addr) != 1 ||
        (made->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0 ||
        bind(made->socket, (struct sockaddr *)&own, sizeof own)) {
        dw_fail("A socket cannot be bound to %s: %s.", plan->address, strerror(errno));
        return NULL;
    }
    made->plan = plan;
    /* Sets DSCP and SO_PRIORITY if the flow has them. */
    if (dw_mark_socket(plan, made->socket))
        dw_warn("The kernel refuses the flow's network priority: %s.", strerror(errno));
    return made;
}

/* ---- Supplier ---- */

static void *connect_peer(const dw_plan *plan, unsigned slot) {
    struct sockaddr_in to = {.sin_family = AF_INET};
    char host[64];
    unsigned port;
    /* The endpoint is the text that `listen_peer` announced on the other host. */
    const char *endpoint = plan->destinations[slot].endpoint;
    if (!dw_split_endpoint(endpoint, host, sizeof host, &port) || inet_pton(AF_INET, host, &to.sin_addr) != 1) {
        dw_fail("`%s` is no endpoint of this carrier.", endpoint);
        return NULL;
    }
    to.sin_port = htons((uint16_t)port);
    peer *made = open_peer(plan);
    if (made && connect(made->socket, (struct sockaddr *)&to, sizeof to)) {
        dw_fail("%s cannot be reached: %s.", endpoint, strerror(errno));
        return NULL;
    }
    /* Say of each setting whether the middleware implements it. */
    if (plan->reliability == DW_BEST_EFFORT)
        dw_honoured("reliability");
    else
        dw_ignored("reliability");
    dw_ignored("history");
    dw_ignored("deadline");
    dw_ignored("priority");
    return made;
}

static int send_peer(void *sender, uint64_t sequence, const uint8_t *octets, size_t size_bytes) {
    peer *to = sender;
    (void)sequence; /* it is in the octets too */
    /* A middleware that may block needs a time limit here: plan->send_bound_ns. */
    if (send(to->socket, octets, size_bytes, MSG_DONTWAIT) >= 0)
        return DW_SENT;
    return errno == EAGAIN ? DW_BACKLOG_FULL : DW_REFUSED | errno;
}

static void close_peer(void *of) {
    close(((peer *)of)->socket);
    free(of);
}

/* ---- Consumer ---- */

static void *listen_peer(const dw_plan *plan, dw_consumer *consumer) {
    peer *made = open_peer(plan);
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    char endpoint[96];
    if (!made)
        return NULL;
    made->consumer = consumer;
    int buffer_bytes = plan->receive_buffer_bytes ? plan->receive_buffer_bytes : RECEIVE_BUFFER_BYTES;
    setsockopt(made->socket, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
    dw_honoured("receive-buffer");
    getsockname(made->socket, (struct sockaddr *)&own, &size);
    snprintf(endpoint, sizeof endpoint, "udp://%s:%u", plan->address, ntohs(own.sin_port));
    /* From here on, messages are not lost: the socket queues them. */
    dw_announce(endpoint, endpoint + strlen("udp://"));
    return made;
}

static void receive_peer(void *receiver) {
    peer *from = receiver;
    struct pollfd polls[2] = {{.fd = from->socket, .events = POLLIN}, {.fd = dw_stop_fd(), .events = POLLIN}};
    while (!dw_stopped()) {
        ssize_t size = recv(from->socket, from->octets, sizeof from->octets, MSG_DONTWAIT);
        if (size >= 0)
            dw_arrived(from->consumer, from->octets, (size_t)size); /* stamps and records */
        else
            poll(polls, 2, DW_STOP_LOOK_MS);
    }
}

int main(void) {
    static const dw_carrier carrier = {
        .name = "template",
        .connect = connect_peer,
        .send = send_peer,
        .disconnect = close_peer,
        .listen = listen_peer,
        .receive = receive_peer,
        .close = close_peer,
    };
    return dw_main(&carrier);
}
