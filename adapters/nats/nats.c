/*
 * NATS: core publish and subscribe through nats-server, which the broker's part starts. Messages are not stored, so
 * that a lost connection loses messages.
 */
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deckwatch_carrier.h"

#define CONNECT_MS 5000
/* Messages and octets that wait in the consumer's library for its code. */
#define PENDING_MESSAGES 65536
#define PENDING_BYTES (64 << 20)

typedef struct peer {
    const dw_plan *plan;
    dw_consumer *consumer;
    natsConnection *connection;
    natsSubscription *subscription;
    int64_t dropped;
} peer;

static void close_peer(void *of) {
    peer *closed = of;
    if (!closed->consumer)
        natsConnection_FlushTimeout(closed->connection, dw_linger_ns() / 1000000 + 1);
    natsSubscription_Destroy(closed->subscription);
    natsConnection_Destroy(closed->connection);
    free(closed);
    nats_Close();
}

static peer *open_peer(const dw_plan *plan) {
    natsOptions *options = NULL;
    char url[256];
    peer *made = calloc(1, sizeof *made);
    natsStatus status = made ? NATS_OK : NATS_NO_MEMORY;
    snprintf(url, sizeof url, "nats://%s", plan->broker ? plan->broker : "");
    if (status == NATS_OK)
        status = natsOptions_Create(&options);
    if (status == NATS_OK)
        status = natsOptions_SetURL(options, url);
    if (status == NATS_OK)
        status = natsOptions_SetTimeout(options, CONNECT_MS);
    /* A message must not wait in the buffer for the next one. */
    if (status == NATS_OK)
        status = natsOptions_SetSendAsap(options, true);
    if (status == NATS_OK)
        status = natsOptions_SetWriteDeadline(options, (plan->send_bound_ns + 999999) / 1000000);
    /* A new connection would hide that messages were lost. */
    if (status == NATS_OK)
        status = natsOptions_SetAllowReconnect(options, false);
    if (status == NATS_OK)
        status = natsConnection_Connect(&made->connection, options);
    natsOptions_Destroy(options);
    if (status != NATS_OK) {
        dw_fail("NATS cannot connect to the server at %s: %s.", plan->broker, natsStatus_GetText(status));
        return NULL;
    }
    made->plan = plan;
    if (plan->reliability == DW_BEST_EFFORT)
        dw_honoured("reliability");
    else
        dw_ignored("reliability");
    dw_ignored("history");
    dw_honoured("deadline"); /* the write deadline */
    dw_ignored("priority");
    dw_ignored("dscp");
    dw_ignored("socket-priority");
    return made;
}

/* The consumers' subscriptions are at the server before the supplier starts: `listen` waits for that. */
static void *connect_peer(const dw_plan *plan, unsigned slot) {
    (void)slot;
    return open_peer(plan);
}

static int send_peer(void *sender, uint64_t sequence, const uint8_t *octets, size_t size_bytes) {
    peer *to = sender;
    (void)sequence;
    natsStatus status = natsConnection_Publish(to->connection, to->plan->topic, octets, (int)size_bytes);
    switch (status) {
    case NATS_OK: return DW_SENT;
    case NATS_TIMEOUT: return DW_TIMED_OUT;
    case NATS_CONNECTION_CLOSED:
    case NATS_CONNECTION_DISCONNECTED:
    case NATS_IO_ERROR: return DW_DISCONNECTED;
    default: return DW_REFUSED;
    }
}

static void *listen_peer(const dw_plan *plan, dw_consumer *consumer) {
    peer *made = open_peer(plan);
    if (!made)
        return NULL;
    made->consumer = consumer;
    natsStatus status = natsConnection_SubscribeSync(&made->subscription, made->connection, plan->topic);
    if (status == NATS_OK)
        status = natsSubscription_SetPendingLimits(made->subscription, PENDING_MESSAGES, PENDING_BYTES);
    /* The server answers this after it has the subscription. */
    if (status == NATS_OK)
        status = natsConnection_FlushTimeout(made->connection, CONNECT_MS);
    if (status != NATS_OK) {
        dw_fail("NATS cannot subscribe to %s: %s.", plan->topic, natsStatus_GetText(status));
        return NULL;
    }
    dw_announce(NULL, NULL);
    return made;
}

/* Counts the messages that the library dropped because this code was slow. */
static void count_dropped(peer *of) {
    int64_t dropped;
    if (natsSubscription_GetDropped(of->subscription, &dropped) != NATS_OK || dropped <= of->dropped)
        return;
    dw_overflows(of->consumer, (uint64_t)(dropped - of->dropped));
    of->dropped = dropped;
}

static void receive_peer(void *receiver) {
    peer *from = receiver;
    while (!dw_stopped()) {
        natsMsg *message = NULL;
        natsStatus status = natsSubscription_NextMsg(&message, from->subscription, DW_STOP_LOOK_MS);
        if (status == NATS_OK) {
            const char *octets = natsMsg_GetData(message);
            dw_arrived(from->consumer, (const uint8_t *)octets, (size_t)natsMsg_GetDataLength(message));
            natsMsg_Destroy(message);
        } else if (status == NATS_TIMEOUT || status == NATS_SLOW_CONSUMER)
            count_dropped(from);
        else if (dw_lost_early()) {
            dw_fail("NATS cannot receive from the server at %s: %s.", from->plan->broker, natsStatus_GetText(status));
            break;
        }
    }
    count_dropped(from);
}

/*
 * The server delays the supplier while half of `max_pending` waits for a consumer. It closes the connection of a
 * consumer that accepts nothing for `write_deadline`. So a consumer that has stopped is cut before it delays others.
 */
static pid_t start_server(const dw_plan *plan, unsigned port) {
    char config[512], path[32];
    snprintf(config, sizeof config,
             "host: \"%s\"\nport: %u\nmax_payload: %u\nmax_pending: 256MB\nwrite_deadline: \"2s\"\n", plan->address,
             port, DW_SIZE_BYTES_MAX);
    int file = dw_memory_file(config, path, sizeof path);
    if (file < 0)
        return -1;
    pid_t process = dw_spawn((const char *const[]){"nats-server", "-c", path, NULL}, file);
    close(file);
    return process;
}

static int broker(const dw_plan *plan) { return dw_serve(plan, start_server); }

int main(void) {
    static const dw_carrier carrier = {
        .name = "nats",
        .connect = connect_peer,
        .send = send_peer,
        .disconnect = close_peer,
        .listen = listen_peer,
        .receive = receive_peer,
        .close = close_peer,
        .broker = broker,
    };
    return dw_main(&carrier);
}
