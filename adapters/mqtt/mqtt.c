/*
 * MQTT: one topic through a mosquitto broker, which the broker's part starts. QoS 1 if the flow is reliable, QoS 0 if
 * it is best effort.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mosquitto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deckwatch_carrier.h"

#define KEEPALIVE_S 30
#define CONNECT_BOUND_NS INT64_C(5000000000)
/* Octets that wait in the supplier's library, and the least and the greatest number of messages for them. */
#define QUEUE_BYTES (8 << 20)
#define QUEUE_MESSAGES_MIN 4
#define QUEUE_MESSAGES_MAX 1000

typedef struct peer {
    const dw_plan *plan;
    dw_consumer *consumer;
    struct mosquitto *client;
    int qos;
    /* What the library's thread and the caller share. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_ready; /* connected; a consumer has subscribed too */
    bool is_lost;
    int refusal; /* the broker's code */
    unsigned queued, queue_max;
} peer;

static void signal_change(peer *of) {
    pthread_cond_broadcast(&of->changed);
    pthread_mutex_unlock(&of->lock);
}

/* Waits for a change of the peer, whose lock is held. Returns false at `end_ns`. */
static bool wait_change(peer *of, int64_t end_ns) {
    struct timespec end = {.tv_sec = end_ns / 1000000000, .tv_nsec = end_ns % 1000000000};
    return pthread_cond_timedwait(&of->changed, &of->lock, &end) != ETIMEDOUT;
}

static void on_connect(struct mosquitto *client, void *context, int code) {
    peer *own = context;
    if (code == 0 && own->consumer)
        code = mosquitto_subscribe(client, NULL, own->plan->topic, own->qos);
    pthread_mutex_lock(&own->lock);
    own->refusal = code;
    own->is_ready = !own->consumer;
    signal_change(own);
}

static void on_subscribe(struct mosquitto *client, void *context, int message, int count, const int *granted) {
    peer *own = context;
    (void)client, (void)message;
    pthread_mutex_lock(&own->lock);
    own->is_ready = true;
    own->refusal = count > 0 && granted[0] == own->qos ? 0 : 0x80;
    signal_change(own);
}

static void on_disconnect(struct mosquitto *client, void *context, int code) {
    peer *own = context;
    (void)code;
    pthread_mutex_lock(&own->lock);
    own->is_lost = true;
    signal_change(own);
    /* A new connection would hide that messages were lost. */
    mosquitto_disconnect(client);
}

/* With QoS 1 the broker has the message; with QoS 0 the kernel has it. */
static void on_publish(struct mosquitto *client, void *context, int message) {
    peer *own = context;
    (void)client, (void)message;
    pthread_mutex_lock(&own->lock);
    if (own->queued > 0)
        own->queued--;
    signal_change(own);
}

static void on_message(struct mosquitto *client, void *context, const struct mosquitto_message *message) {
    peer *own = context;
    (void)client;
    dw_arrived(own->consumer, message->payload, (size_t)message->payloadlen);
}

static peer *open_peer(const dw_plan *plan, dw_consumer *consumer) {
    char host[64];
    unsigned port;
    peer *made = calloc(1, sizeof *made);
    mosquitto_lib_init();
    if (!made || !(made->client = mosquitto_new(NULL, true, made))) {
        dw_fail("An MQTT client cannot be made: %s.", strerror(errno));
        return NULL;
    }
    if (!plan->broker || !dw_split_endpoint(plan->broker, host, sizeof host, &port)) {
        dw_fail("`%s` is no endpoint of an MQTT broker.", plan->broker ? plan->broker : "-");
        return NULL;
    }
    made->plan = plan;
    made->consumer = consumer;
    made->qos = plan->reliability == DW_BEST_EFFORT ? 0 : 1;
    size_t fitting = QUEUE_BYTES / (plan->size_bytes + 1);
    made->queue_max = fitting < QUEUE_MESSAGES_MIN   ? QUEUE_MESSAGES_MIN
                      : fitting > QUEUE_MESSAGES_MAX ? QUEUE_MESSAGES_MAX
                                                     : (unsigned)fitting;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &clock);
    pthread_mutex_init(&made->lock, NULL);
    mosquitto_connect_callback_set(made->client, on_connect);
    mosquitto_disconnect_callback_set(made->client, on_disconnect);
    mosquitto_subscribe_callback_set(made->client, on_subscribe);
    mosquitto_publish_callback_set(made->client, on_publish);
    mosquitto_message_callback_set(made->client, on_message);
    mosquitto_int_option(made->client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_max_inflight_messages_set(made->client, 0); /* `queue_max` is the limit */
    int code = mosquitto_connect_bind(made->client, host, (int)port, KEEPALIVE_S, plan->address);
    if (code) {
        dw_fail("MQTT cannot connect to the broker at %s: %s.", plan->broker,
                code == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(code));
        return NULL;
    }
    dw_honoured("reliability");
    dw_ignored("history");
    dw_ignored("deadline");
    dw_ignored("priority");
    dw_ignored("dscp");
    dw_ignored("socket-priority");
    return made;
}

/* Returns true if the broker has accepted the connection, and the subscription of a consumer. */
static bool is_accepted(peer *of) {
    bool is_ready = of->is_ready && !of->refusal;
    if (!is_ready && !dw_stopped())
        dw_fail("The MQTT broker at %s did not accept the %s: code %d.", of->plan->broker,
                of->consumer ? "subscription" : "connection", of->refusal);
    return is_ready;
}

/* ---- Supplier ---- */

/* The consumers have subscribed before the supplier starts: `listen` waits for that. */
static void *connect_peer(const dw_plan *plan, unsigned slot) {
    (void)slot;
    peer *made = open_peer(plan, NULL);
    if (!made)
        return NULL;
    int code = mosquitto_loop_start(made->client);
    if (code) {
        dw_fail("The MQTT client's thread cannot be started: %s.", mosquitto_strerror(code));
        return NULL;
    }
    int64_t end_ns = dw_now_ns() + CONNECT_BOUND_NS;
    pthread_mutex_lock(&made->lock);
    while (!made->is_ready && !made->refusal && !made->is_lost && wait_change(made, end_ns))
        continue;
    pthread_mutex_unlock(&made->lock);
    return is_accepted(made) ? made : NULL;
}

static int send_peer(void *sender, uint64_t sequence, const uint8_t *octets, size_t size_bytes) {
    peer *to = sender;
    int64_t end_ns = dw_now_ns() + to->plan->send_bound_ns;
    (void)sequence;
    pthread_mutex_lock(&to->lock);
    while (to->queued >= to->queue_max && !to->is_lost && wait_change(to, end_ns))
        continue;
    int error = to->is_lost ? DW_DISCONNECTED : to->queued >= to->queue_max ? DW_TIMED_OUT : DW_SENT;
    if (error == DW_SENT)
        to->queued++;
    pthread_mutex_unlock(&to->lock);
    if (error != DW_SENT)
        return error;
    int code = mosquitto_publish(to->client, NULL, to->plan->topic, (int)size_bytes, octets, to->qos, false);
    if (code == MOSQ_ERR_SUCCESS)
        return DW_SENT;
    pthread_mutex_lock(&to->lock);
    to->queued--;
    pthread_mutex_unlock(&to->lock);
    return code == MOSQ_ERR_NO_CONN || code == MOSQ_ERR_CONN_LOST ? DW_DISCONNECTED : DW_REFUSED;
}

static void disconnect_peer(void *sender) {
    peer *closed = sender;
    int64_t end_ns = dw_now_ns() + dw_linger_ns();
    pthread_mutex_lock(&closed->lock);
    while (closed->queued > 0 && !closed->is_lost && wait_change(closed, end_ns))
        continue;
    pthread_mutex_unlock(&closed->lock);
    mosquitto_disconnect(closed->client);
    mosquitto_loop_stop(closed->client, false);
    mosquitto_destroy(closed->client);
    free(closed);
}

/* ---- Consumer ---- */

static void *listen_peer(const dw_plan *plan, dw_consumer *consumer) {
    peer *made = open_peer(plan, consumer);
    int code = 0;
    if (!made)
        return NULL;
    for (int64_t end_ns = dw_now_ns() + CONNECT_BOUND_NS;
         !code && !made->is_ready && !made->refusal && !dw_stopped() && dw_now_ns() < end_ns;)
        code = mosquitto_loop(made->client, DW_STOP_LOOK_MS, 1);
    if (!is_accepted(made))
        return NULL;
    dw_announce(NULL, NULL);
    return made;
}

/* The library reads and calls `on_message` in this thread. */
static void receive_peer(void *receiver) {
    peer *from = receiver;
    while (!dw_stopped()) {
        int code = mosquitto_loop(from->client, DW_STOP_LOOK_MS, 1);
        if (code && dw_lost_early()) {
            dw_fail("MQTT lost the connection to the broker at %s: %s.", from->plan->broker, mosquitto_strerror(code));
            break;
        }
    }
}

static void close_peer(void *of) {
    peer *closed = of;
    mosquitto_disconnect(closed->client);
    mosquitto_destroy(closed->client);
    free(closed);
}

/* ---- Broker ---- */

/* With `user root` a broker that root starts keeps its user: a change would clear the signal that ends it with us. */
static pid_t start_broker(const dw_plan *plan, unsigned port) {
    char config[1024], path[32];
    snprintf(config, sizeof config,
             "listener %u %s\n"
             "allow_anonymous true\n"
             "persistence false\n"
             "user root\n"
             "set_tcp_nodelay true\n"
             "log_type error\nlog_type warning\n"
             "max_inflight_messages 1000\n"
             "max_queued_messages 65536\n"
             "max_queued_bytes 67108864\n",
             port, plan->address);
    int file = dw_memory_file(config, path, sizeof path);
    if (file < 0)
        return -1;
    pid_t process = dw_spawn((const char *const[]){"mosquitto", "-c", path, NULL}, file);
    close(file);
    return process;
}

static int broker(const dw_plan *plan) { return dw_serve(plan, start_broker); }

int main(void) {
    static const dw_carrier carrier = {
        .name = "mqtt",
        .connect = connect_peer,
        .send = send_peer,
        .disconnect = disconnect_peer,
        .listen = listen_peer,
        .receive = receive_peer,
        .close = close_peer,
        .broker = broker,
    };
    return dw_main(&carrier);
}
