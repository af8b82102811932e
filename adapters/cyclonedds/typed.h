/* The flow's own IDL type as a type of Cyclone DDS. */
#ifndef TYPED_H
#define TYPED_H

#include <dds/dds.h>

#include "deckwatch_carrier.h"

typedef struct typed {
    const dds_topic_descriptor_t *descriptor;
    size_t sequence_at; /* of the sequence number in the C struct */
    size_t sequence_size;
} typed;

/* Compiles the flow's IDL file with idlc and cc, or takes the result of an earlier run. Returns false after
 * `dw_warn`. */
bool typed_load(const dw_plan *plan, typed *type);

/* Returns a sample with the value of the plan's body, or null after `dw_warn`. */
void *typed_sample(const dw_plan *plan, const typed *type);

uint64_t typed_sequence(const typed *type, const void *sample);
void typed_set_sequence(const typed *type, void *sample, uint64_t sequence);

#endif
