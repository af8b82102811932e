// What the omniORB ends share: clock, place, the protocol of crates/probe/src/laboratory/end.rs, and the structs that
// are sent.
#pragma once

#include "bench.hh"
#include "experiment.hh"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <vector>

using Deckwatch::ComplexStruct;

inline std::int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

inline void sleep_until(std::int64_t due_ns) {
    const timespec due = {due_ns / 1000000000, due_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {}
}

inline void busy(std::int64_t ns) {
    if (ns <= 0) return;
    const std::int64_t until = now_ns() + ns;
    while (now_ns() < until) {}
}

// Threads that are started later inherit all of this.
inline void place(const char* processor, const char* fifo) {
    if (std::strcmp(processor, "-") != 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(std::atoi(processor), &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    if (std::strcmp(fifo, "-") != 0) {
        rlimit unblocked = {2000000, 2000000};
        setrlimit(RLIMIT_RTTIME, &unblocked);
        sched_param parameters = {};
        parameters.sched_priority = std::atoi(fifo);
        sched_setscheduler(0, SCHED_FIFO, &parameters);
    }
}

inline void greet(const char* reference) {
    std::printf("%s %s\n", sched_getscheduler(0) == SCHED_FIFO ? "fifo" : "other", reference);
    std::fflush(stdout);
}

// One run of a client.
struct Command {
    std::string kind;
    unsigned long there, back, count;
    long long budget_ns, period_ns = 0;
};

inline void answer(const std::vector<std::uint32_t>& round_trips) {
    std::printf("ok %zu\n", round_trips.size());
    std::fwrite(round_trips.data(), sizeof round_trips[0], round_trips.size(), stdout);
}

// Round trips without pause, or with one each period if there is a period.
template <class Call> std::vector<std::uint32_t> take(const Command& command, Call one) {
    std::vector<std::uint32_t> round_trips(command.count, 0);
    for (int warm_up = 0; warm_up < 64; ++warm_up) one();
    std::size_t taken = 0;
    const std::int64_t begin = now_ns();
    std::int64_t before = begin, due = begin;
    while (taken < command.count && before - begin < command.budget_ns) {
        if (command.period_ns) {
            sleep_until(due += command.period_ns);
            before = now_ns();
        }
        one();
        const std::int64_t after = now_ns();
        round_trips[taken++] = static_cast<std::uint32_t>(after - before);
        before = after;
    }
    round_trips.resize(taken);
    return round_trips;
}

// Calls by an absolute schedule: first the round trips, then the times from due to done. The schedule begins before the
// warm-up: else the server would choose times for its clients at which their calls do not meet.
template <class Call> std::vector<std::uint32_t> take_paced(const Command& command, Call one) {
    std::int64_t begin = now_ns();
    one();
    const std::int64_t warmed = now_ns();
    while (begin + command.period_ns < warmed) begin += command.period_ns;
    std::vector<std::uint32_t> round_trips, from_due;
    std::int64_t due = begin;
    while (round_trips.size() < command.count) {
        due += command.period_ns;
        if (due - begin > command.budget_ns) break;
        sleep_until(due);
        const std::int64_t sent = now_ns();
        one();
        const std::int64_t done = now_ns();
        round_trips.push_back(static_cast<std::uint32_t>(done - sent));
        from_due.push_back(static_cast<std::uint32_t>(done - due));
    }
    round_trips.insert(round_trips.end(), from_due.begin(), from_due.end());
    return round_trips;
}

// Messages without pause; `await_arrival` waits for all of them.
template <class Send, class Await> void stream(const Command& command, Send send, Await await_arrival) {
    const std::int64_t begin = now_ns();
    std::uint64_t sent = 0;
    while (sent < command.count && now_ns() - begin < command.budget_ns) {
        for (int i = 0; i < 16; ++i) send();
        sent += 16;
    }
    await_arrival(sent);
    std::printf("sum %llu %lld\n", static_cast<unsigned long long>(sent), static_cast<long long>(now_ns() - begin));
}

inline ComplexStruct element() {
    ComplexStruct one;
    one.s = 12;
    one.l = 34567;
    one.f = 0.5F;
    one.d = 2.25;
    one.c = 'x';
    one.name = CORBA::string_dup("contact");
    return one;
}

template <class Sequence, class Value> Sequence filled(unsigned long count, const Value& value) {
    Sequence sequence;
    sequence.length(count);
    for (unsigned long i = 0; i < count; ++i) sequence[i] = value;
    return sequence;
}
