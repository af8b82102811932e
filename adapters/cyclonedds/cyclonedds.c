/*
 * Cyclone DDS. Discovery and data use unicast only: the supplier's participant has the consumers' endpoints as peers.
 * So networks without multicast carry it too.
 *
 * Each reader has a writer of its own, in a partition with the name of the reader's endpoint. With one writer for all,
 * a reader that has stopped holds up the others as soon as the reliable writer's cache is full.
 */
#include <arpa/inet.h>
#include <dds/dds.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deckwatch_carrier.h"
#include "octets.h"
#include "typed.h"

#define DOMAIN 0
#define CONFIG_MAX 65536
/* Octets that wait in the writer for acknowledgement. A peer that has stopped uses them up. */
#define WRITER_BYTES "4 MiB"
#define WRITER_LOW_BYTES "2 MiB" /* a writer that waits for room goes on here */
/* The receive buffer that is asked for. It should hold what a writer sends without acknowledgement. */
#define RECEIVE_BYTES (8 << 20)
/* How long a reader waits before it asks for a lost fragment: the default of 100 ms is longer than most deadlines. */
#define NACK_DELAY "10 ms"
/* Octets of unread samples in a reader that keeps all, and the least and the greatest number of samples for them. */
#define READER_BYTES (64 << 20)
#define READER_SAMPLES_MIN 16
#define READER_SAMPLES_MAX 65536
#define MATCH_BOUND_NS INT64_C(10000000000)
#define MATCH_LOOK_NS INT64_C(5000000)
#define TAKE_MAX 16
/* A reader sets this user data when it has matched the writer: only then does it take what the writer sends. */
#define MATCHED "deckwatch-matched"

/* A writer or a reader. */
typedef struct peer {
    dds_entity_t end;
    dds_qos_t *qos;
    dw_consumer *consumer; /* consumer only */
    bool has_deadline;
    uint32_t missed; /* deadlines before the last sample */
    void *sample; /* supplier of an IDL type only */
} peer;

/* What the writers of this process share. */
static dds_entity_t domain, participant, topic;
static unsigned open_count;
static char own_endpoint[96];
static bool is_typed;
static typed type;

static void close_peer(void *of) {
    peer *closed = of;
    if (!closed->consumer)
        dds_wait_for_acks(closed->end, dw_linger_ns());
    dds_delete(closed->end);
    dds_delete_qos(closed->qos);
    if (closed->sample)
        dds_sample_free(closed->sample, type.descriptor, DDS_FREE_ALL);
    free(closed);
    if (--open_count == 0)
        dds_delete(domain);
}

static bool has_failed(dds_return_t code, const char *what) {
    if (code >= 0)
        return false;
    dw_fail("Cyclone DDS cannot %s: %s.", what, dds_strretcode(code));
    return true;
}

/* Returns a UDP port that is free on this address, or 0. */
static unsigned free_udp_port(const char *address) {
    struct sockaddr_in own = {.sin_family = AF_INET};
    socklen_t size = sizeof own;
    unsigned port = 0;
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (udp >= 0 && inet_pton(AF_INET, address, &own.sin_addr) == 1 && !bind(udp, (struct sockaddr *)&own, size) &&
        !getsockname(udp, (struct sockaddr *)&own, &size))
        port = ntohs(own.sin_port);
    if (udp >= 0)
        close(udp);
    return port;
}

/* Writes the configuration: this part's interface, one port for discovery and data, the peers. */
static bool write_config(const dw_plan *plan, unsigned port, char *config) {
    int size = snprintf(
        config, CONFIG_MAX,
        "<Domain id=\"any\"><General><Interfaces><NetworkInterface address=\"%s\"/></Interfaces>"
        "<AllowMulticast>false</AllowMulticast><MaxMessageSize>65500 B</MaxMessageSize></General>"
        "<Internal><SocketReceiveBufferSize max=\"%d B\"/><NackDelay>" NACK_DELAY "</NackDelay>"
        "<Watermarks><WhcAdaptive>false</WhcAdaptive><WhcHighInit>" WRITER_BYTES "</WhcHighInit>"
        "<WhcHigh>" WRITER_BYTES "</WhcHigh><WhcLow>" WRITER_LOW_BYTES "</WhcLow></Watermarks></Internal>"
        "<Discovery><ParticipantIndex>0</ParticipantIndex><Ports><Base>%u</Base><DomainGain>0</DomainGain>"
        "<ParticipantGain>0</ParticipantGain><UnicastMetaOffset>0</UnicastMetaOffset>"
        "<UnicastDataOffset>0</UnicastDataOffset></Ports><Peers>",
        plan->address, plan->receive_buffer_bytes ? plan->receive_buffer_bytes : RECEIVE_BYTES, port);
    for (unsigned i = 0; plan->role == DW_SUPPLIER && i < plan->destination_count; i++) {
        char host[64];
        unsigned peer_port;
        const char *endpoint = plan->destinations[i].endpoint;
        if (!dw_split_endpoint(endpoint, host, sizeof host, &peer_port)) {
            dw_fail("`%s` is no endpoint of Cyclone DDS.", endpoint);
            return false;
        }
        size += snprintf(config + size, CONFIG_MAX - (size_t)size, "<Peer Address=\"%s:%u\"/>", host, peer_port);
    }
    snprintf(config + size, CONFIG_MAX - (size_t)size, "</Peers></Discovery></Domain>");
    return true;
}

static dds_qos_t *make_qos(const dw_plan *plan, const char *partition) {
    dds_qos_t *qos = dds_create_qos();
    dds_qset_partition1(qos, partition);
    dds_qset_reliability(
        qos, plan->reliability == DW_BEST_EFFORT ? DDS_RELIABILITY_BEST_EFFORT : DDS_RELIABILITY_RELIABLE,
        plan->send_bound_ns);
    dw_honoured("reliability");
    if (plan->history == DW_KEEP_LAST)
        dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, (int32_t)plan->history_depth);
    else
        dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    dw_honoured("history");
    dw_honoured("receive-buffer");
    size_t samples = READER_BYTES / (plan->size_bytes + 1);
    if (plan->role == DW_CONSUMER && plan->history != DW_KEEP_LAST)
        dds_qset_resource_limits(qos,
                                 samples < READER_SAMPLES_MIN   ? READER_SAMPLES_MIN
                                 : samples > READER_SAMPLES_MAX ? READER_SAMPLES_MAX
                                                                : (int32_t)samples,
                                 DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
    /* DEADLINE bounds the time between two samples, not the latency of one. */
    if (plan->deadline_ns > 0 && plan->gap_ns > 0)
        dds_qset_deadline(qos, plan->gap_ns + plan->deadline_ns);
    dw_honoured("deadline"); /* it limits the writer's blocking time too */
    /* The latency budget stays 0: with a larger one, Cyclone DDS hands samples to another thread. */
    if (plan->priority >= 0)
        dds_qset_transport_priority(qos, plan->priority);
    /* Cyclone DDS announces the transport priority to its peers; it neither marks nor orders packets by it. */
    dw_ignored("priority");
    dw_ignored("dscp");
    dw_ignored("socket-priority");
    return qos;
}

/* Makes the participant and the topic. Returns false after `dw_fail`. */
static bool join_domain(const dw_plan *plan) {
    static char config[CONFIG_MAX];
    char name[256];
    unsigned port = free_udp_port(plan->address);
    if (!port) {
        dw_fail("A UDP port cannot be bound on %s: %s.", plan->address, strerror(errno));
        return false;
    }
    if (!write_config(plan, port, config) ||
        has_failed(domain = dds_create_domain(DOMAIN, config), "use its configuration") ||
        has_failed(participant = dds_create_participant(DOMAIN, NULL, NULL), "create a participant"))
        return false;
    snprintf(own_endpoint, sizeof own_endpoint, "%s:%u", plan->address, port);
    is_typed = plan->idl_file && typed_load(plan, &type);
    if (is_typed)
        dw_honoured("idl-type");
    else
        dw_ignored("idl-type");
    snprintf(name, sizeof name, "%s", plan->topic);
    for (char *at = name; (at = strchr(at, '-'));)
        *at = '_'; /* names of topics have no hyphen */
    topic = dds_create_topic(participant, is_typed ? type.descriptor : &Deckwatch_Message_desc, name, NULL, NULL);
    return !has_failed(topic, "create the topic");
}

/* ---- Supplier ---- */

/* Returns true if the reader has matched the writer on its side too. */
static bool is_matched(const peer *of) {
    dds_instance_handle_t reader;
    if (dds_get_matched_subscriptions(of->end, &reader, 1) < 1)
        return false;
    dds_builtintopic_endpoint_t *endpoint = dds_get_matched_subscription_data(of->end, reader);
    void *data = NULL;
    size_t size = 0;
    if (!endpoint)
        return false;
    bool is_told = dds_qget_userdata(endpoint->qos, &data, &size) && size == strlen(MATCHED) &&
                   !memcmp(data, MATCHED, size);
    dds_free(data);
    dds_builtintopic_free_endpoint(endpoint);
    return is_told;
}

static void *connect_peer(const dw_plan *plan, unsigned slot) {
    const dw_destination *destination = &plan->destinations[slot];
    if (slot == 0 && !join_domain(plan))
        return NULL;
    peer *made = calloc(1, sizeof *made);
    if (!made || !(made->qos = make_qos(plan, destination->endpoint)) ||
        has_failed(made->end = dds_create_writer(participant, topic, made->qos, NULL), "create a writer"))
        return NULL;
    open_count++;
    if (is_typed && !(made->sample = typed_sample(plan, &type))) {
        dw_fail("The body of flow %s is no value of %s.", plan->flow, plan->idl_type);
        return NULL;
    }
    for (int64_t end_ns = dw_now_ns() + MATCH_BOUND_NS; !dw_stopped(); dds_sleepfor(MATCH_LOOK_NS)) {
        if (is_matched(made))
            return made;
        if (dw_now_ns() > end_ns) {
            dw_fail("Cyclone DDS found no reader on %s (%s). Check that UDP packets pass between the hosts.%s",
                    destination->host, destination->endpoint,
                    plan->idl_file ? " For an IDL type, all hosts need `cc` and `idlc`, or none." : "");
            break;
        }
    }
    return NULL;
}

static int send_peer(void *sender, uint64_t sequence, const uint8_t *octets, size_t size_bytes) {
    peer *to = sender;
    dds_return_t code;
    if (is_typed) {
        typed_set_sequence(&type, to->sample, sequence);
        code = dds_write(to->end, to->sample);
    } else {
        Deckwatch_Message sample = {.octets = {._maximum = (uint32_t)size_bytes,
                                               ._length = (uint32_t)size_bytes,
                                               ._buffer = (uint8_t *)(uintptr_t)octets}};
        code = dds_write(to->end, &sample);
    }
    if (code == DDS_RETCODE_OK)
        return DW_SENT;
    return code == DDS_RETCODE_TIMEOUT ? DW_TIMED_OUT : DW_REFUSED | EIO;
}

/* ---- Consumer ---- */

static void *listen_peer(const dw_plan *plan, dw_consumer *consumer) {
    peer *made = calloc(1, sizeof *made);
    if (!made || !join_domain(plan) || !(made->qos = make_qos(plan, own_endpoint)) ||
        has_failed(made->end = dds_create_reader(participant, topic, made->qos, NULL), "create a reader"))
        return NULL;
    open_count++;
    made->consumer = consumer;
    made->has_deadline = plan->deadline_ns > 0 && plan->gap_ns > 0;
    dw_announce(own_endpoint, own_endpoint);
    return made;
}

/* Reports what the reader lost since the last call, and tells the writer when it has matched. */
static void look_at_status(peer *from) {
    dds_subscription_matched_status_t matched;
    dds_sample_lost_status_t lost;
    if (!dds_get_subscription_matched_status(from->end, &matched) && matched.current_count_change > 0) {
        dds_qset_userdata(from->qos, MATCHED, strlen(MATCHED));
        if (has_failed(dds_set_qos(from->end, from->qos), "announce the match"))
            return;
    }
    if (!dds_get_sample_lost_status(from->end, &lost) && lost.total_count_change > 0)
        dw_overflows(from->consumer, (uint64_t)lost.total_count_change);
}

static void take(peer *from) {
    void *samples[TAKE_MAX] = {NULL};
    dds_sample_info_t infos[TAKE_MAX];
    dds_return_t count;
    while ((count = dds_take(from->end, samples, infos, TAKE_MAX, TAKE_MAX)) > 0) {
        for (dds_return_t i = 0; i < count; i++) {
            if (!infos[i].valid_data)
                continue;
            const Deckwatch_Message *octets = samples[i];
            if (is_typed)
                dw_arrived_sequence(from->consumer, typed_sequence(&type, samples[i]));
            else
                dw_arrived(from->consumer, octets->octets._buffer, octets->octets._length);
        }
        dds_return_loan(from->end, samples, count);
        dds_requested_deadline_missed_status_t missed;
        if (from->has_deadline && !dds_get_requested_deadline_missed_status(from->end, &missed))
            from->missed = missed.total_count;
    }
    has_failed(count, "take samples");
}

static void receive_peer(void *receiver) {
    peer *from = receiver;
    dds_entity_t waitset = dds_create_waitset(participant);
    if (has_failed(waitset, "create a wait set") ||
        has_failed(dds_set_status_mask(from->end, DDS_DATA_AVAILABLE_STATUS | DDS_SUBSCRIPTION_MATCHED_STATUS |
                                                      DDS_SAMPLE_LOST_STATUS),
                   "enable statuses") ||
        has_failed(dds_waitset_attach(waitset, from->end, 0), "attach to a wait set"))
        return;
    while (!dw_stopped()) {
        if (has_failed(dds_waitset_wait(waitset, NULL, 0, DDS_MSECS(DW_STOP_LOOK_MS)), "wait"))
            break;
        take(from);
        look_at_status(from);
    }
    if (from->missed > 0)
        dw_warn("Cyclone DDS reports %u missed deadlines: no sample came in the DEADLINE of the reader.", from->missed);
}

int main(void) {
    static const dw_carrier carrier = {
        .name = "Cyclone DDS",
        .connect = connect_peer,
        .send = send_peer,
        .disconnect = close_peer,
        .listen = listen_peer,
        .receive = receive_peer,
        .close = close_peer,
    };
    return dw_main(&carrier);
}
