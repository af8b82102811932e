/* The plan's fields for Rust, so that Rust need not repeat the layout of the C structures. */
#include "deckwatch_carrier.h"

const char *dwr_flow(const dw_plan *plan) { return plan->flow; }
const char *dwr_topic(const dw_plan *plan) { return plan->topic; }
const char *dwr_address(const dw_plan *plan) { return plan->address; }
size_t dwr_size_bytes(const dw_plan *plan) { return plan->size_bytes; }
int64_t dwr_send_bound_ns(const dw_plan *plan) { return plan->send_bound_ns; }
unsigned dwr_destination_count(const dw_plan *plan) { return plan->destination_count; }
const char *dwr_host(const dw_plan *plan, unsigned index) { return plan->destinations[index].host; }
const char *dwr_endpoint(const dw_plan *plan, unsigned index) { return plan->destinations[index].endpoint; }
int dwr_priority(const dw_plan *plan) { return plan->priority; }
int dwr_dscp(const dw_plan *plan) { return plan->dscp; }
int dwr_receive_buffer_bytes(const dw_plan *plan) { return plan->receive_buffer_bytes; }
bool dwr_is_supplier(const dw_plan *plan) { return plan->role == DW_SUPPLIER; }
bool dwr_is_reliable(const dw_plan *plan) { return plan->reliability == DW_RELIABLE; }
bool dwr_keeps_all(const dw_plan *plan) { return plan->history == DW_KEEP_ALL; }
unsigned dwr_history_depth(const dw_plan *plan) { return plan->history == DW_KEEP_LAST ? plan->history_depth : 0; }

void dwr_fail(const char *text) { dw_fail("%s", text); }

int dwr_main(const char *name, void *(*connect)(const dw_plan *, unsigned),
             int (*send)(void *, uint64_t, const uint8_t *, size_t), void (*disconnect)(void *),
             void *(*listen)(const dw_plan *, dw_consumer *), void (*receive)(void *), void (*close)(void *)) {
    const dw_carrier carrier = {
        .name = name,
        .connect = connect,
        .send = send,
        .disconnect = disconnect,
        .listen = listen,
        .receive = receive,
        .close = close,
    };
    return dw_main(&carrier);
}
