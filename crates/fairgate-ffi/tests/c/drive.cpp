// Drives the C++ wrapper with payloads that can only be moved. A failed check ends the program with 1.
#include "fairgate.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

using Payload = std::unique_ptr<int>;

static void fair_queueing() {
    fairgate::Link<Payload> link(fairgate::Tree::from_line("drr quantum=1000 limit=4"), 10, 1);
    int dropped = 0;
    const auto on_drop = [&](Payload &&payload, const char *reason) {
        CHECK(payload && *payload >= 0 && std::strlen(reason) > 0);
        dropped++;
    };
    // Two flows: the first sends four packets at once, the second one.
    fairgate_packet packet{};
    packet.length = 1000;
    for (int number = 0; number < 4; number++) {
        packet.flow = 1;
        CHECK(link.enqueue(packet, std::make_unique<int>(number), 0, on_drop) == FAIRGATE_QUEUED);
    }
    packet.flow = 2;
    link.enqueue(packet, std::make_unique<int>(100), 0, on_drop);
    CHECK(dropped == 1 && link.size() == 4);
    bool second_was_early = false;
    for (int place = 0; place < 4; place++) {
        CHECK(link.peek(0, on_drop) != nullptr);
        auto next = link.dequeue(0, on_drop);
        CHECK(next.departure && next.payload && *next.payload);
        second_was_early |= **next.payload == 100 && place < 2;
    }
    CHECK(second_was_early);
    auto nothing = link.dequeue(0, on_drop);
    CHECK(!nothing.departure && !nothing.wait_until);
    for (const auto &node : link.statistics()) {
        const auto &sum = node.counters;
        CHECK(sum.enqueued_packets ==
              sum.dequeued_packets + sum.dropped_packets + sum.flushed_packets + sum.backlog_packets);
    }
}

static void waits_and_flushes() {
    const auto slow = fairgate::Tree::from_line("tbf rate=8mbit burst=1000b / fifo limit=9");
    fairgate::Link<Payload> link(slow, 10, 1);
    int flushed = 0;
    const auto on_drop = [&](Payload &&, const char *reason) { flushed += !std::strcmp(reason, "flushed"); };
    fairgate_packet packet{};
    packet.length = 1000;
    for (int number = 0; number < 3; number++) {
        link.enqueue(packet, std::make_unique<int>(number), 0, on_drop);
    }
    CHECK(link.dequeue(0, on_drop).departure);
    CHECK(*link.dequeue(0, on_drop).wait_until == 1000000 && link.watchdog() == 1000000);
    link.change(fairgate::Tree::from_line("tbf rate=80mbit burst=1000b / fifo limit=9"), 0, on_drop);
    CHECK(*link.dequeue(0, on_drop).wait_until == 100000);
    link.flush(on_drop);
    CHECK(flushed == 2 && link.size() == 0);
}

static void copies() {
    fairgate::Link<int> link(fairgate::Tree::from_line("netem duplicate=1"), 3, 1);
    const auto ignore = [](int &&, const char *) {};
    link.allow_copies();
    fairgate_packet packet{};
    packet.length = 100;
    CHECK(link.enqueue(packet, 7, 0, ignore) == FAIRGATE_QUEUED);
    CHECK(link.enqueue_copies(0, ignore) == 1);
    // There is room for this packet, but not for its copy.
    CHECK(link.enqueue(packet, 8, 0, ignore) == FAIRGATE_QUEUED);
    CHECK(link.enqueue_copies(0, ignore) == 0);
    for (const int expected : {7, 7, 8}) CHECK(*link.dequeue(0, ignore).payload == expected);
    CHECK(link.size() == 0);
}

static void errors() {
    try {
        fairgate::Tree::from_line("fq_codel tagret=5ms");
        CHECK(false);
    } catch (const fairgate::Error &error) {
        CHECK(std::strstr(error.what(), "target"));
    }
    fairgate::Link<Payload> link(fairgate::Tree::from_tc("qdisc add dev eth0 root pfifo"), 1, 1);
    const auto ignore = [](Payload &&, const char *) {};
    fairgate_packet packet{};
    auto payload = std::make_unique<int>(1);
    try {
        link.enqueue(packet, std::move(payload), 0, ignore);
        CHECK(false);
    } catch (const fairgate::Error &error) {
        CHECK(std::strstr(error.what(), "length") && payload);
    }
    packet.length = 1;
    CHECK(link.enqueue(packet, std::move(payload), 0, ignore) == FAIRGATE_QUEUED && !payload);
    payload = std::make_unique<int>(2);
    CHECK(link.enqueue(packet, std::move(payload), 0, ignore) == FAIRGATE_FULL && payload);
    CHECK(fairgate::Tree::from_line("fifo").to_toml("a").find("[queue.\"a\"]") == 0);
}

int main() {
    fair_queueing();
    waits_and_flushes();
    copies();
    errors();
    std::puts("all checks hold");
}
