// Sends UDP datagrams of several flows, each paced to a rate of its own by `fq`: the departure times that a
// server's kernel would keep are kept in the program.
//
//   pace ADDRESS PORT SECONDS RATE [RATE ...]    rates in bit/s of payload, one for each flow
//
// All datagrams of 10 ms are given to the queue at once, each with its earliest departure. The program prints,
// for each flow, the rate and how late its datagrams left.
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <fairgate.h>

enum { PAYLOAD = 1200, MOST_FLOWS = 64 };

static const uint64_t TICK = 10000000;  // a program's own period: 10 ms

struct flow {
    double rate;        // bit/s
    uint64_t next;      // the departure of the next datagram
    uint64_t sent;      // datagrams
    uint64_t late_sum;  // ns
    uint64_t late_most;
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t time) {
    const struct timespec until = {(time_t)(time / 1000000000u), (long)(time % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static void fail(const char *what) {
    perror(what);
    exit(3);
}

int main(int count, char **words) {
    if (count < 5 || count - 4 > MOST_FLOWS) {
        fprintf(stderr, "usage: pace ADDRESS PORT SECONDS RATE [RATE ...]\n");
        return 2;
    }
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[2]))};
    const double seconds = atof(words[3]);
    if (inet_pton(AF_INET, words[1], &to.sin_addr) != 1 || to.sin_port == 0 || !(seconds > 0)) {
        fprintf(stderr, "ADDRESS must be an IPv4 address, PORT 1 to 65535, SECONDS above 0\n");
        return 2;
    }
    const int flows = count - 4;
    struct flow all[MOST_FLOWS] = {0};
    for (int number = 0; number < flows; number++) {
        all[number].rate = atof(words[4 + number]);
        if (!(all[number].rate >= 1000)) {
            fprintf(stderr, "RATE must be at least 1000 bit/s: %s\n", words[4 + number]);
            return 2;
        }
    }
    const int out = socket(AF_INET, SOCK_DGRAM, 0);
    if (out < 0 || connect(out, (struct sockaddr *)&to, sizeof to) < 0) fail("socket");

    char *error = NULL;
    fairgate_tree *tree = fairgate_tree_from_line("fq limit=100000 flow_limit=100000", &error);
    if (!tree) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    fairgate_pool *pool = fairgate_pool_new(100000, NULL);
    fairgate_node *node = fairgate_node_new(tree, pool, (uint64_t)getpid(), NULL);
    fairgate_tree_free(tree);

    uint8_t payload[PAYLOAD] = {0};
    const uint64_t start = clock_ns();
    const uint64_t end = start + (uint64_t)(seconds * 1e9);
    for (int number = 0; number < flows; number++) all[number].next = start;
    uint64_t tick = start;  // everything before it is enqueued
    for (;;) {
        uint64_t now = clock_ns();
        if (now >= tick && tick < end) {
            tick = now + TICK < end ? now + TICK : end;
            for (int number = 0; number < flows; number++) {
                struct flow *flow = &all[number];
                while (flow->next < tick) {
                    const fairgate_packet packet = {
                        .departure = flow->next,
                        .flow = (uint64_t)(number + 1) * 0x9e3779b97f4a7c15u,
                        .cookie = (uint64_t)number << 56 | (flow->next - start),
                        .length = PAYLOAD,
                    };
                    const fairgate_status status = fairgate_node_enqueue(node, &packet, now);
                    if (status != FAIRGATE_QUEUED) {
                        fprintf(stderr, "status %d: %s\n", status, fairgate_node_mistake(node));
                        return 4;
                    }
                    flow->next += (uint64_t)(PAYLOAD * 8 * 1e9 / flow->rate);
                }
            }
        }
        fairgate_departure departure;
        uint64_t until = FAIRGATE_NEVER;
        fairgate_status status;
        while ((status = fairgate_node_dequeue(node, now, &departure, &until)) == FAIRGATE_PACKET) {
            struct flow *flow = &all[departure.cookie >> 56];
            if (send(out, payload, sizeof payload, 0) < 0 && errno != ECONNREFUSED) fail("send");
            const uint64_t due = start + (departure.cookie & 0xffffffffffffffu);
            const uint64_t late = clock_ns() - due;
            flow->sent++;
            flow->late_sum += late;
            if (late > flow->late_most) flow->late_most = late;
        }
        if (status == FAIRGATE_IDLE && tick >= end) break;
        if (tick < end && tick < until) until = tick;
        sleep_until(until);
    }
    printf("%4s %14s %14s %12s %12s\n", "flow", "rate bit/s", "sent bit/s", "late mean us", "most us");
    for (int number = 0; number < flows; number++) {
        const struct flow *flow = &all[number];
        printf("%4d %14.0f %14.0f %12.1f %12.1f\n", number + 1, flow->rate, flow->sent * PAYLOAD * 8 / seconds,
               flow->sent ? flow->late_sum / 1e3 / flow->sent : 0.0, flow->late_most / 1e3);
    }
    fairgate_node_free(node);
    fairgate_pool_free(pool);
    close(out);
    return 0;
}
