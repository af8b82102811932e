/* typed.c: see typed.h. */
#define _GNU_SOURCE
#include "typed.h"

#include <dds/ddsi/ddsi_cdrstream.h>
#include <dds/version.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Octets of a flow's IDL text with its includes. */
#define IDL_MAX (4u << 20)
#define ARGUMENTS_MAX (16 + 2 * DW_IDL_INCLUDES_MAX)
/* Octets of a shared object. */
#define OBJECT_MAX (64u << 20)
/* XCDR version 1 is CDR. */
#define XCDR_1 1

/* Runs a program until its end. Returns false after `dw_warn`. */
static bool run(const char *const argv[]) {
    int status;
    pid_t process = dw_spawn(argv, -1);
    if (process < 0) {
        dw_warn("`%s` cannot be started: %s. Cyclone DDS carries plain octets instead of the flow's IDL type.", argv[0],
                strerror(errno));
        return false;
    }
    if (waitpid(process, &status, 0) != process || status != 0) {
        dw_warn("`%s` failed. Cyclone DDS carries plain octets instead of the flow's IDL type.", argv[0]);
        return false;
    }
    return true;
}

/* Reads a whole file with a final zero. Returns null if it cannot be read or is larger than `max`. */
static char *read_file(const char *path, size_t max, size_t *size) {
    FILE *file = fopen(path, "re");
    struct stat status;
    char *text = NULL;
    if (file && !fstat(fileno(file), &status) && (size_t)status.st_size <= max &&
        (text = malloc((size_t)status.st_size + 1))) {
        *size = fread(text, 1, (size_t)status.st_size, file);
        text[*size] = '\0';
    }
    if (file)
        fclose(file);
    return text;
}

static bool write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    bool is_whole = file && fputs(text, file) >= 0;
    return file && !fclose(file) && is_whole;
}

static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Returns the end of the string or character literal at `at`. */
static const char *skip_literal(const char *at) {
    char quote = *at++;
    while (*at && *at != quote)
        at += *at == '\\' && at[1] ? 2 : 1;
    return *at ? at + 1 : at;
}

/* Removes the declarations that idlc refuses: interfaces, value types and exceptions. The text is preprocessed. */
static void strip(char *text) {
    static const char *const REFUSED[] = {"interface", "valuetype", "exception"};
    static const char *const BEFORE[] = {"abstract", "local", "custom"};
    char *to = text, *start = NULL; /* of the words before a refused one */
    for (const char *at = text; *at;) {
        size_t size = 1;
        if (*at == '"' || *at == '\'')
            size = (size_t)(skip_literal(at) - at);
        else if (is_word(*at))
            for (size = 0; is_word(at[size]);)
                size++;
        bool is_refused = false, is_before = false;
        for (size_t i = 0; i < 3; i++) {
            is_refused |= size == strlen(REFUSED[i]) && !memcmp(at, REFUSED[i], size);
            is_before |= size == strlen(BEFORE[i]) && !memcmp(at, BEFORE[i], size);
        }
        if (is_refused) {
            int depth = 0;
            to = start ? start : to;
            for (; *at && !(*at == ';' && depth == 0); at = *at == '"' || *at == '\'' ? skip_literal(at) : at + 1)
                depth += (*at == '{') - (*at == '}');
            at += *at != '\0';
            start = NULL;
            continue;
        }
        if (is_before && !start)
            start = to;
        else if (is_word(*at) && !is_before)
            start = NULL;
        memmove(to, at, size);
        to += size;
        at += size;
    }
    *to = '\0';
}

/* Writes the flow's IDL text, preprocessed and stripped, to `path`. Returns the text. */
static char *prepare_idl(const dw_plan *plan, const char *path) {
    const char *arguments[ARGUMENTS_MAX] = {"cc", "-E", "-P", "-undef", "-nostdinc", "-x", "c", "-o", path};
    size_t count = 9, size;
    for (unsigned i = 0; i < plan->idl_include_count; i++) {
        arguments[count++] = "-I";
        arguments[count++] = plan->idl_includes[i];
    }
    arguments[count] = plan->idl_file;
    if (!run(arguments))
        return NULL;
    char *text = read_file(path, IDL_MAX, &size);
    if (!text) {
        dw_warn("The IDL file %s is larger than %u octets. Cyclone DDS carries plain octets.", plan->idl_file, IDL_MAX);
        return NULL;
    }
    strip(text);
    if (write_file(path, text))
        return text;
    dw_warn("%s cannot be written: %s. Cyclone DDS carries plain octets.", path, strerror(errno));
    free(text);
    return NULL;
}

/* Writes `Nav::NavData` as `Nav_NavData`. */
static void c_name(const char *scoped, char *name, size_t size) {
    size_t length = 0;
    for (scoped += strncmp(scoped, "::", 2) ? 0 : 2; *scoped && length + 1 < size; scoped++)
        if (*scoped != ':')
            name[length++] = *scoped;
        else if (scoped[1] == ':')
            name[length++] = '_';
    name[length] = '\0';
}

/* Returns the FNV-1a hash of all that the shared object depends on. */
static uint64_t digest(const dw_plan *plan, const char *idl) {
    const char *const parts[] = {DDS_VERSION, plan->idl_type, plan->idl_sequence_member, idl};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *at = parts[i];; at++) {
            hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
            if (!*at)
                break;
        }
    return hash;
}

/* Makes the cache's directory. Returns false if this user has none. */
static bool cache_directory(char path[PATH_MAX]) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int size = cache && *cache == '/' ? snprintf(path, PATH_MAX, "%s/deckwatch/cyclonedds", cache)
               : home && *home == '/' ? snprintf(path, PATH_MAX, "%s/.cache/deckwatch/cyclonedds", home)
                                      : PATH_MAX;
    if (size >= PATH_MAX)
        return false;
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    return !mkdir(path, 0700) || errno == EEXIST;
}

/* Copies a shared object to the cache. The file has its name only when it is whole. A failure costs the next run a
 * second, so that it is not reported. */
static void keep(const char *object, const char *directory, const char *cached) {
    size_t size;
    char *octets = read_file(object, OBJECT_MAX, &size), own[64];
    int file = octets ? open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (file >= 0 && write(file, octets, size) == (ssize_t)size) {
        snprintf(own, sizeof own, "/proc/self/fd/%d", file);
        (void)!linkat(AT_FDCWD, own, AT_FDCWD, cached, AT_SYMLINK_FOLLOW);
    }
    if (file >= 0)
        close(file);
    free(octets);
}

static bool compile(const dw_plan *plan, const char *directory, const char *idl_path, const char *object) {
    char name[512], glue[2048], glue_path[PATH_MAX], flow_path[PATH_MAX];
    c_name(plan->idl_type, name, sizeof name);
    snprintf(glue_path, sizeof glue_path, "%s/glue.c", directory);
    snprintf(flow_path, sizeof flow_path, "%s/flow.c", directory);
    snprintf(glue, sizeof glue,
             "#include <stddef.h>\n#include \"flow.h\"\n"
             "const dds_topic_descriptor_t *const deckwatch_descriptor = &%s_desc;\n"
             "const size_t deckwatch_sequence[2] = {offsetof(%s, %s), sizeof(((%s *)0)->%s)};\n",
             name, name, plan->idl_sequence_member, name, plan->idl_sequence_member);
    if (!write_file(glue_path, glue)) {
        dw_warn("%s cannot be written: %s. Cyclone DDS carries plain octets.", glue_path, strerror(errno));
        return false;
    }
    return run((const char *const[]){"idlc", "-x", "final", "-o", directory, idl_path, NULL}) &&
           run((const char *const[]){"cc", "-O2", "-shared", "-fPIC", "-w", "-I", directory, "-o", object, flow_path,
                                     glue_path, NULL});
}

static bool load(const char *object, typed *type) {
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    const dds_topic_descriptor_t *const *descriptor = library ? dlsym(library, "deckwatch_descriptor") : NULL;
    const size_t *sequence = library ? dlsym(library, "deckwatch_sequence") : NULL;
    if (!descriptor || !sequence)
        return false;
    *type = (typed){*descriptor, sequence[0], sequence[1]};
    return true;
}

static void remove_files(const char *directory) {
    static const char *const NAMES[] = {"flow.idl", "flow.c", "flow.h", "glue.c", "flow.so"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, NAMES[i]);
        unlink(path);
    }
    rmdir(directory);
}

bool typed_load(const dw_plan *plan, typed *type) {
    char directory[PATH_MAX / 4], idl_path[PATH_MAX / 2], object[PATH_MAX / 2], cache[PATH_MAX], cached[PATH_MAX + 32];
    if (!plan->scratch || !plan->idl_type || !plan->idl_sequence_member)
        return false;
    if (snprintf(directory, sizeof directory, "%s/idl-XXXXXX", plan->scratch) >= (int)sizeof directory ||
        !mkdtemp(directory)) {
        dw_warn("%s cannot be made: %s. Cyclone DDS carries plain octets.", directory, strerror(errno));
        return false;
    }
    snprintf(idl_path, sizeof idl_path, "%s/flow.idl", directory);
    snprintf(object, sizeof object, "%s/flow.so", directory);
    char *idl = prepare_idl(plan, idl_path);
    bool has_cache = idl && cache_directory(cache), is_loaded = false;
    if (has_cache) {
        snprintf(cached, sizeof cached, "%s/%016" PRIx64 ".so", cache, digest(plan, idl));
        is_loaded = load(cached, type);
    }
    if (idl && !is_loaded && compile(plan, directory, idl_path, object)) {
        is_loaded = load(object, type);
        if (!is_loaded)
            dw_warn("The compiled IDL type cannot be loaded: %s. Cyclone DDS carries plain octets.", dlerror());
        else if (has_cache)
            keep(object, cache, cached);
    }
    free(idl);
    remove_files(directory);
    return is_loaded;
}

void *typed_sample(const dw_plan *plan, const typed *type) {
    uint32_t at = 0, size = (uint32_t)plan->size_bytes;
    char *octets = malloc(size + 8); /* aligned as CDR needs it */
    void *sample = calloc(1, type->descriptor->m_size);
    if (!octets || !sample)
        return NULL;
    memcpy(octets, plan->body, size);
    bool swaps = DDSRT_ENDIAN == DDSRT_BIG_ENDIAN;
    if (!dds_stream_normalize_data(octets, &at, size, swaps, XCDR_1, type->descriptor->m_ops)) {
        free(octets);
        free(sample);
        return NULL;
    }
    dds_istream_t from;
    dds_istream_init(&from, size, octets, XCDR_1);
    dds_stream_read(&from, sample, type->descriptor->m_ops);
    free(octets);
    return sample;
}

/* Reads an unsigned number of 1 to 8 octets in this machine's order. */
uint64_t typed_sequence(const typed *type, const void *sample) {
    const uint8_t *at = (const uint8_t *)sample + type->sequence_at;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (type->sequence_size) {
    case 1: return *at;
    case 2: return memcpy(&two, at, 2), two;
    case 4: return memcpy(&four, at, 4), four;
    default: return memcpy(&eight, at, 8), eight;
    }
}

void typed_set_sequence(const typed *type, void *sample, uint64_t sequence) {
    uint8_t *at = (uint8_t *)sample + type->sequence_at;
    switch (type->sequence_size) {
    case 1: *at = (uint8_t)sequence; break;
    case 2: memcpy(at, &(uint16_t){(uint16_t)sequence}, 2); break;
    case 4: memcpy(at, &(uint32_t){(uint32_t)sequence}, 4); break;
    default: memcpy(at, &sequence, 8); break;
    }
}
