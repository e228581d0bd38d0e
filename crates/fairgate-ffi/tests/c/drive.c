// Drives every function of the C ABI. A failed check names its line and ends the program with 1.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fairgate.h"

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

static const uint64_t MS = 1000000;

static fairgate_node *node_of(const char *line, fairgate_pool *pool) {
    char *error = NULL;
    fairgate_tree *tree = fairgate_tree_from_line(line, &error);
    CHECK(tree && !error);
    fairgate_node *node = fairgate_node_new(tree, pool, 7, &error);
    CHECK(node && !error);
    fairgate_tree_free(tree);
    return node;
}

static void order_and_peek(void) {
    fairgate_pool *pool = fairgate_pool_new(4, NULL);
    fairgate_node *node = node_of("fifo limit=3", pool);
    fairgate_packet packet = {.length = 100};
    for (uint64_t cookie = 1; cookie <= 3; cookie++) {
        packet.cookie = cookie;
        CHECK(fairgate_node_enqueue(node, &packet, MS) == FAIRGATE_QUEUED);
    }
    packet.cookie = 4;
    CHECK(fairgate_node_enqueue(node, &packet, MS) == FAIRGATE_DROPPED);
    // Until the dropped packet is taken, the pool is full.
    CHECK(fairgate_pool_length(pool) == 4);
    CHECK(fairgate_node_enqueue(node, &packet, MS) == FAIRGATE_FULL);
    fairgate_dropped dropped;
    CHECK(fairgate_pool_take_dropped(pool, &dropped));
    CHECK(dropped.cookie == 4 && dropped.length == 100 && !strcmp(dropped.reason, "queue_limit"));
    CHECK(!fairgate_pool_take_dropped(pool, &dropped));

    fairgate_departure departure;
    CHECK(fairgate_node_peek(node, 2 * MS, &departure) == FAIRGATE_PACKET && departure.cookie == 1);
    for (uint64_t cookie = 1; cookie <= 3; cookie++) {
        CHECK(fairgate_node_dequeue(node, 2 * MS, &departure, NULL) == FAIRGATE_PACKET);
        CHECK(departure.cookie == cookie && departure.enqueued_at == MS && departure.length == 100);
        CHECK(fairgate_node_transmits_until(node, 2 * MS) == (cookie < 3));
    }
    CHECK(fairgate_node_peek(node, 2 * MS, &departure) == FAIRGATE_IDLE);
    CHECK(fairgate_node_dequeue(node, 2 * MS, &departure, NULL) == FAIRGATE_IDLE);
    CHECK(fairgate_node_watchdog(node) == FAIRGATE_NEVER);

    fairgate_statistics sum;
    CHECK(fairgate_node_statistics(node, &sum));
    CHECK(sum.enqueued_packets == 4 && sum.dequeued_packets == 3 && sum.dropped_packets == 1);
    CHECK(sum.backlog_packets == 0 && sum.dequeued_bytes == 300);
    fairgate_node_free(node);
    fairgate_pool_free(pool);
}

static void shaper(void) {
    fairgate_pool *pool = fairgate_pool_new(100, NULL);
    // 8 Mbit/s: a packet of 1000 bytes each millisecond, the first at once.
    fairgate_node *node = node_of("tbf rate=8mbit burst=1000b / fifo limit=100", pool);
    fairgate_packet packet = {.length = 1000};
    for (packet.cookie = 0; packet.cookie < 3; packet.cookie++) {
        CHECK(fairgate_node_enqueue(node, &packet, 0) == FAIRGATE_QUEUED);
    }
    fairgate_departure departure;
    uint64_t until = 0;
    CHECK(fairgate_node_dequeue(node, 0, &departure, &until) == FAIRGATE_PACKET);
    CHECK(fairgate_node_dequeue(node, 0, &departure, &until) == FAIRGATE_WAIT && until == MS);
    CHECK(fairgate_node_watchdog(node) == MS);
    CHECK(fairgate_node_dequeue(node, MS, &departure, &until) == FAIRGATE_PACKET);

    // Twice the rate from now on.
    char *error = NULL;
    fairgate_tree *faster =
        fairgate_tree_from_line("tbf rate=16mbit burst=1000b / fifo limit=100", &error);
    CHECK(fairgate_node_change(node, faster, MS, &error) && !error);
    CHECK(fairgate_node_dequeue(node, MS, &departure, &until) == FAIRGATE_WAIT && until == MS + MS / 2);
    fairgate_tree_free(faster);

    // Another tree takes over the packets. The one that waited for tokens may leave now.
    fairgate_tree *other = fairgate_tree_from_line("fq_codel", &error);
    CHECK(fairgate_node_change(node, other, MS, &error) && !error);
    CHECK(fairgate_node_watchdog(node) == FAIRGATE_NEVER);
    CHECK(fairgate_node_dequeue(node, MS, &departure, &until) == FAIRGATE_PACKET);
    CHECK(fairgate_node_dequeue(node, MS, &departure, &until) == FAIRGATE_IDLE);
    // A missing tree is refused, and the tree stays as it is.
    CHECK(!fairgate_node_change(node, NULL, MS, &error) && error);
    fairgate_string_free(error);
    fairgate_packet last = {.length = 1000, .cookie = 9};
    CHECK(fairgate_node_enqueue(node, &last, MS) == FAIRGATE_QUEUED);
    fairgate_tree_free(other);

    CHECK(fairgate_node_flush(node) == FAIRGATE_IDLE);
    fairgate_dropped dropped;
    CHECK(fairgate_pool_take_dropped(pool, &dropped) && !strcmp(dropped.reason, "flushed"));
    CHECK(fairgate_pool_length(pool) == 0);
    fairgate_pool_free(pool);  // the node keeps its memory
    fairgate_node_free(node);
}

struct copier {
    fairgate_node *node;
    int refused, asked;
};

static bool make_copy(void *context, uint64_t cookie, uint64_t *copy) {
    struct copier *copier = context;
    copier->asked++;
    // A function that would change the tree is refused here.
    fairgate_packet packet = {.length = 100};
    copier->refused += fairgate_node_enqueue(copier->node, &packet, MS) == FAIRGATE_INVALID;
    *copy = cookie + 100;
    return cookie != 2;
}

static void copies(void) {
    fairgate_pool *pool = fairgate_pool_new(10, NULL);
    fairgate_node *node = node_of("netem duplicate=1", pool);
    struct copier copier = {.node = node};
    fairgate_packet packet = {.length = 100, .cookie = 1};
    // Nobody copies, so there is no copy.
    CHECK(fairgate_node_enqueue(node, &packet, MS) == FAIRGATE_QUEUED);
    CHECK(fairgate_node_enqueue_copies(node, MS, make_copy, &copier) == 0 && copier.asked == 0);
    CHECK(fairgate_pool_allow_copies(pool) && !fairgate_pool_allow_copies(NULL));
    for (packet.cookie = 2; packet.cookie <= 3; packet.cookie++) {
        CHECK(fairgate_node_enqueue(node, &packet, MS) == FAIRGATE_QUEUED);
        CHECK(fairgate_node_enqueue_copies(node, MS, make_copy, &copier) == (packet.cookie == 3));
    }
    CHECK(copier.asked == 2 && copier.refused == 2);
    fairgate_departure departure;
    const uint64_t expected[] = {1, 2, 3, 103};
    for (int number = 0; number < 4; number++) {
        CHECK(fairgate_node_dequeue(node, MS, &departure, NULL) == FAIRGATE_PACKET);
        CHECK(departure.cookie == expected[number] && departure.length == 100);
    }
    CHECK(fairgate_node_dequeue(node, MS, &departure, NULL) == FAIRGATE_IDLE);
    // Without a function there is no copy. Time does not go back.
    packet.cookie = 5;
    CHECK(fairgate_node_enqueue(node, &packet, MS) == FAIRGATE_QUEUED);
    CHECK(fairgate_node_enqueue_copies(node, 0, make_copy, &copier) == 0);
    CHECK(strstr(fairgate_node_mistake(node), "earlier call"));
    CHECK(fairgate_node_enqueue_copies(node, MS, NULL, NULL) == 0);
    CHECK(fairgate_node_enqueue_copies(NULL, MS, make_copy, NULL) == 0);
    CHECK(fairgate_pool_length(pool) == 1);
    fairgate_node_free(node);
    fairgate_pool_free(pool);
}

struct seen {
    int nodes;
    uint64_t voice, bulk;
    char last[64];
};

static void see(void *context, const char *path, const char *discipline, const fairgate_statistics *sum) {
    struct seen *seen = context;
    seen->nodes++;
    if (!strcmp(path, "1")) seen->voice = sum->enqueued_packets;
    if (!strcmp(path, "2")) seen->bulk = sum->enqueued_packets;
    snprintf(seen->last, sizeof seen->last, "%s", discipline);
}

// IPv4, UDP, 192.0.2.1:5004 to 198.51.100.7:`port`, DSCP 46, ECT(0).
static void datagram(uint8_t frame[28], uint16_t port) {
    static const uint8_t model[28] = {0x45, 0xba, 0,   28, 0,   0,  0,   0, 64,   17,   0, 0, 192, 0,
                                      2,    1,    198, 51, 100, 7,  0x13, 0x8c, 0,   0,    0, 8, 0,   0};
    memcpy(frame, model, sizeof model);
    frame[22] = (uint8_t)(port >> 8);
    frame[23] = (uint8_t)port;
}

static void count_drops(void *context, const char *reason, uint64_t packets) {
    if (!strcmp(reason, "flushed")) *(uint64_t *)context += packets;
}

static void find_flag(void *context, const char *name, int64_t value, bool is_set) {
    (void)value;
    (void)is_set;
    *(int *)context += name[0] != '\0';
}

static void frames_and_classes(void) {
    static const char *toml =
        "[queue.line]\ndiscipline = \"prio\"\ndefault = 2\n"
        "[[queue.line.class]]\nid = 1\ndiscipline = \"fifo\"\n"
        "[[queue.line.class]]\nid = 2\ndiscipline = \"fq_codel\"\n"
        "[[queue.line.class]]\nid = 3\ndiscipline = \"fifo\"\n"
        "[[queue.line.filter]]\nclass = 1\ndestination_port = 5060\n";
    char *error = NULL;
    fairgate_tree *tree = fairgate_tree_from_toml(toml, NULL, &error);
    if (error) fprintf(stderr, "%s\n", error);
    CHECK(tree);
    fairgate_pool *pool = fairgate_pool_new(10, NULL);
    fairgate_node *node = fairgate_node_new(tree, pool, 7, NULL);
    uint8_t frame[28];
    fairgate_packet packet = {.length = 28, .cookie = 1};
    datagram(frame, 80);
    CHECK(fairgate_node_enqueue_frame(node, &packet, frame, sizeof frame, FAIRGATE_RAW_IP, 0) == 0);
    packet.cookie = 2;
    datagram(frame, 5060);
    CHECK(fairgate_node_enqueue_frame(node, &packet, frame, sizeof frame, FAIRGATE_RAW_IP, 0) == 0);
    struct seen seen = {0};
    CHECK(fairgate_node_visit(node, see, &seen));
    CHECK(seen.nodes == 4 && seen.voice == 1 && seen.bulk == 1 && !strcmp(seen.last, "fifo"));
    fairgate_departure departure;
    CHECK(fairgate_node_dequeue(node, 0, &departure, NULL) == FAIRGATE_PACKET);
    CHECK(departure.cookie == 2 && departure.dscp == 46 && departure.ecn == 2);
    CHECK(fairgate_frame_set_dscp(frame, sizeof frame, FAIRGATE_RAW_IP, 8) && frame[1] == (8 << 2 | 2));
    CHECK(fairgate_frame_set_ce(frame, sizeof frame, FAIRGATE_RAW_IP) && frame[1] == (8 << 2 | 3));
    CHECK(!fairgate_frame_set_dscp(frame, sizeof frame, FAIRGATE_RAW_IP, 64));
    CHECK(!fairgate_frame_set_ce(NULL, 9, FAIRGATE_RAW_IP) && !fairgate_frame_set_ce(frame, 28, 7));
    CHECK(!fairgate_frame_set_ce(frame, 3, FAIRGATE_RAW_IP) && frame[1] == (8 << 2 | 3));
    // Bytes that are no frame are a packet all the same.
    CHECK(fairgate_node_enqueue_frame(node, &packet, NULL, 0, FAIRGATE_ETHERNET, 0) == FAIRGATE_QUEUED);
    CHECK(fairgate_node_enqueue_frame(node, &packet, frame, 9, FAIRGATE_ETHERNET, 0) == FAIRGATE_QUEUED);
    int variables = 0;
    CHECK(fairgate_node_visit_variables(node, find_flag, &variables));
    CHECK(fairgate_node_flush(node) == FAIRGATE_IDLE);
    uint64_t flushed = 0;
    CHECK(fairgate_node_visit_drops(node, count_drops, &flushed) && flushed == 0);

    char *text = fairgate_tree_to_toml(tree, "line");
    fairgate_tree *again = fairgate_tree_from_toml(text, "line", &error);
    CHECK(again && !error);
    fairgate_string_free(text);
    fairgate_tree_free(again);
    fairgate_tree_free(tree);
    fairgate_node_free(node);
    fairgate_pool_free(pool);
}

// netem says which bit is wrong; the program flips it, and nothing else.
static void wrong_bits(void) {
    fairgate_pool *pool = fairgate_pool_new(10, NULL);
    fairgate_node *bad = node_of("netem corrupt=1", pool), *good = node_of("netem", pool);
    fairgate_departure departure;
    int flipped[8 * 28] = {0}, different = 0;
    for (uint64_t cookie = 0; cookie < 500; cookie++) {
        uint8_t frame[28] = {0};
        const fairgate_packet packet = {.length = sizeof frame, .cookie = cookie};
        CHECK(fairgate_node_enqueue(bad, &packet, cookie) == FAIRGATE_QUEUED);
        CHECK(fairgate_node_peek(bad, cookie, &departure) == FAIRGATE_PACKET);
        const uint64_t shown = departure.corrupted_bit;
        CHECK(fairgate_node_dequeue(bad, cookie, &departure, NULL) == FAIRGATE_PACKET);
        CHECK(departure.corrupted_bit == shown && shown < 8 * sizeof frame);
        CHECK(fairgate_frame_flip(frame, sizeof frame, shown));
        int wrong = 0;
        for (size_t place = 0; place < sizeof frame; place++) {
            for (int bit = 0; bit < 8; bit++) wrong += frame[place] >> bit & 1;
        }
        CHECK(wrong == 1 && frame[shown / 8] == 1 << shown % 8);
        different += !flipped[shown]++;
    }
    // 224 bits, 500 times one of them: about 200 are hit.
    CHECK(different > 150);
    const fairgate_packet packet = {.length = 28};
    uint8_t frame[28] = {0};
    CHECK(fairgate_node_enqueue(good, &packet, 0) == FAIRGATE_QUEUED);
    CHECK(fairgate_node_dequeue(good, 0, &departure, NULL) == FAIRGATE_PACKET);
    CHECK(departure.corrupted_bit == FAIRGATE_NO_BIT);
    CHECK(!fairgate_frame_flip(frame, sizeof frame, FAIRGATE_NO_BIT));
    CHECK(!fairgate_frame_flip(frame, sizeof frame, 8 * sizeof frame) && !fairgate_frame_flip(NULL, 28, 0));
    fairgate_node_free(bad);
    fairgate_node_free(good);
    fairgate_pool_free(pool);
}

// A filter of tc that compares a byte of the header, the time to live, and not a field with a name.
static void bytes_of_headers(void) {
    static const char *script =
        "tc qdisc add dev e root handle 1: prio\n"
        "tc filter add dev e parent 1: protocol ip prio 1 u32 match u8 0 0xff at 8 flowid 1:3\n"
        "tc filter add dev e parent 1: protocol ip prio 2 u32 match u8 0x40 0xff at 8 flowid 1:1\n";
    char *error = NULL;
    fairgate_tree *tree = fairgate_tree_from_tc(script, NULL, 0, &error);
    CHECK(tree && !error);
    fairgate_pool *pool = fairgate_pool_new(10, NULL);
    fairgate_node *plain = node_of("fifo limit=10", pool);
    fairgate_node *node = fairgate_node_new(tree, pool, 7, NULL);
    uint8_t frame[28];
    datagram(frame, 80);
    fairgate_packet packet = {.length = 28};
    CHECK(fairgate_node_enqueue_frame(node, &packet, frame, sizeof frame, FAIRGATE_RAW_IP, 0) == 0);
    CHECK(fairgate_node_enqueue(node, &packet, 0) == FAIRGATE_QUEUED);
    struct seen seen = {0};
    CHECK(fairgate_node_visit(node, see, &seen));
    // Without a frame no filter matches, and the priority decides: class 2.
    CHECK(seen.voice == 1 && seen.bulk == 1);

    // A change can bring such a filter, too.
    fairgate_tree *without = fairgate_tree_from_tc("tc qdisc add dev e root handle 1: prio", NULL, 0, NULL);
    fairgate_pool *other = fairgate_pool_new(10, NULL);
    fairgate_node *changed = fairgate_node_new(without, other, 7, NULL);
    CHECK(fairgate_node_change(changed, tree, 0, &error) && !error);
    CHECK(fairgate_node_enqueue_frame(changed, &packet, frame, sizeof frame, FAIRGATE_RAW_IP, 0) == 0);
    seen = (struct seen){0};
    CHECK(fairgate_node_visit(changed, see, &seen) && seen.voice == 1);
    fairgate_node_free(changed);
    fairgate_pool_free(other);
    fairgate_tree_free(without);
    fairgate_tree_free(tree);
    fairgate_node_free(plain);
    fairgate_node_free(node);
    fairgate_pool_free(pool);
}

static void call_back(void *context, const char *path, const char *discipline,
                      const fairgate_statistics *sum) {
    (void)path;
    (void)discipline;
    (void)sum;
    fairgate_node *node = context;
    fairgate_packet packet = {.length = 1};
    CHECK(fairgate_node_enqueue(node, &packet, 0) == FAIRGATE_INVALID);
    CHECK(strstr(fairgate_node_mistake(node), "visits"));
}

static void mistakes(void) {
    char *error = NULL;
    CHECK(!fairgate_tree_from_line("fq_codel tagret=5ms", &error));
    CHECK(strstr(error, "tagret") && strstr(error, "target") && strstr(error, ":1:"));
    fairgate_string_free(error);
    CHECK(!fairgate_tree_from_line("fq_codel tagret=5ms", NULL));
    CHECK(!fairgate_tree_from_line(NULL, &error) && strstr(error, "NULL"));
    fairgate_string_free(error);
    CHECK(!fairgate_tree_from_line("\xff\xfe", &error) && strstr(error, "UTF-8"));
    fairgate_string_free(error);
    CHECK(!fairgate_tree_from_toml("[queue.a]\ndiscipline=\"fifo\"\n[queue.b]\ndiscipline=\"fifo\"\n", NULL,
                                   &error));
    CHECK(strstr(error, "`a`, `b`"));
    fairgate_string_free(error);
    CHECK(!fairgate_tree_from_tc("tc qdisc add dev eth0 root fq_codel limt 9", NULL, 0, &error));
    CHECK(strstr(error, "limt") && strstr(error, "script:1:"));
    fairgate_string_free(error);
    fairgate_tree *tree = fairgate_tree_from_tc("tc qdisc add dev eth0 root fq_codel", "eth0", 1500, &error);
    CHECK(tree && !error);
    CHECK(!fairgate_node_new(tree, NULL, 0, &error) && strstr(error, "pool"));
    fairgate_string_free(error);
    CHECK(!fairgate_pool_new(0, &error) && strstr(error, "at least 1"));
    fairgate_string_free(error);

    fairgate_pool *pool = fairgate_pool_new(3, NULL);
    fairgate_node *node = fairgate_node_new(tree, pool, 0, NULL);
    fairgate_departure departure;
    fairgate_packet packet = {.length = 0};
    CHECK(fairgate_node_enqueue(node, &packet, 5) == FAIRGATE_INVALID);
    CHECK(strstr(fairgate_node_mistake(node), "length"));
    packet = (fairgate_packet){.length = 1, .priority = 16};
    CHECK(fairgate_node_enqueue(node, &packet, 5) == FAIRGATE_INVALID);
    packet = (fairgate_packet){.length = 1, .dscp = 64};
    CHECK(fairgate_node_enqueue(node, &packet, 5) == FAIRGATE_INVALID);
    packet = (fairgate_packet){.length = 1, .ecn = 4};
    CHECK(fairgate_node_enqueue(node, &packet, 5) == FAIRGATE_INVALID);
    packet = (fairgate_packet){.length = 1};
    CHECK(fairgate_node_enqueue_frame(node, &packet, NULL, 1, FAIRGATE_RAW_IP, 5) == FAIRGATE_INVALID);
    CHECK(fairgate_node_enqueue_frame(node, &packet, NULL, 0, 9, 5) == FAIRGATE_INVALID);
    CHECK(fairgate_node_enqueue(node, NULL, 5) == FAIRGATE_INVALID);
    CHECK(fairgate_node_enqueue(NULL, &packet, 5) == FAIRGATE_INVALID);
    CHECK(fairgate_node_enqueue(node, &packet, 5) == FAIRGATE_QUEUED);
    CHECK(fairgate_node_dequeue(node, 4, &departure, NULL) == FAIRGATE_INVALID);
    CHECK(strstr(fairgate_node_mistake(node), "monotonic"));
    CHECK(fairgate_node_dequeue(node, 5, NULL, NULL) == FAIRGATE_INVALID);
    CHECK(fairgate_node_visit(node, call_back, node));
    CHECK(fairgate_node_dequeue(node, 5, &departure, NULL) == FAIRGATE_PACKET);
    CHECK(!fairgate_node_visit(node, NULL, NULL) && !fairgate_node_statistics(node, NULL));
    fairgate_tree_free(tree);
    // A node that is freed gives its places in the pool back.
    CHECK(fairgate_node_enqueue(node, &packet, 5) == FAIRGATE_QUEUED && fairgate_pool_length(pool) == 1);
    fairgate_node_free(node);
    CHECK(fairgate_pool_length(pool) == 0);
    fairgate_pool_free(pool);
    fairgate_tree_free(NULL);
    fairgate_node_free(NULL);
    fairgate_pool_free(NULL);
    fairgate_string_free(NULL);
    CHECK(fairgate_node_watchdog(NULL) == FAIRGATE_NEVER && !fairgate_tree_to_toml(NULL, "a"));
}

int main(void) {
    CHECK(fairgate_abi_version() == FAIRGATE_ABI_VERSION);
    CHECK(strchr(fairgate_version(), '.'));
    order_and_peek();
    shaper();
    copies();
    frames_and_classes();
    wrong_bits();
    bytes_of_headers();
    mistakes();
    puts("all checks hold");
    return 0;
}
