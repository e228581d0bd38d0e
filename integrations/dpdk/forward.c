// Forwards frames between two DPDK ports through a tree of Fairgate for each direction: what testpmd's
// forwarding loop does, with a queue in the middle.
//
//   forward EAL-OPTIONS -- [--once] TREE [TREE]
//
// The trees are for port 0 to port 1 and for the way back; one tree serves both. It ends on SIGINT or SIGTERM,
// or with --once one second after the last frame (for ports that read a file). Then it prints what each
// direction did.
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <fairgate.h>

enum { BURST = 32, RING = 1024, MBUFS = 65535, QUEUED = 30000, CACHE = 256 };

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

// One direction: frames from one port to the other.
struct direction {
    uint16_t from, to;
    fairgate_pool *pool;
    fairgate_node *node;
    // Dequeued frames that the port did not take yet.
    struct rte_mbuf *waiting[BURST];
    uint16_t first, count;
    uint64_t received, sent, full;
};

static uint64_t cycles_start;

// The time since the start in nanoseconds. The product has 128 bits, so it does not overflow.
static uint64_t now_ns(void) {
    const uint64_t cycles = rte_get_tsc_cycles() - cycles_start;
    return (uint64_t)((unsigned __int128)cycles * 1000000000u / rte_get_tsc_hz());
}

static struct rte_mbuf *frame_of(uint64_t cookie) { return (struct rte_mbuf *)(uintptr_t)cookie; }

static void free_dropped(struct direction *way) {
    fairgate_dropped dropped;
    while (fairgate_pool_take_dropped(way->pool, &dropped)) rte_pktmbuf_free(frame_of(dropped.cookie));
}

// Stops the program with the text of a wrong call, which no correct program makes.
static void refuse(const struct direction *way, fairgate_status status) {
    if (status == FAIRGATE_INVALID) rte_exit(EXIT_FAILURE, "%s\n", fairgate_node_mistake(way->node));
    if (status == FAIRGATE_BROKEN) rte_exit(EXIT_FAILURE, "a bug in Fairgate\n");
}

// Enqueues what the port received. Returns how many frames.
static uint16_t take_in(struct direction *way, uint64_t now) {
    struct rte_mbuf *burst[BURST];
    const uint16_t count = rte_eth_rx_burst(way->from, 0, burst, BURST);
    for (uint16_t place = 0; place < count; place++) {
        struct rte_mbuf *frame = burst[place];
        const fairgate_packet packet = {
            .cookie = (uintptr_t)frame,
            .length = rte_pktmbuf_pkt_len(frame),
            .memory = frame->buf_len,
        };
        const fairgate_status status =
            fairgate_node_enqueue_frame(way->node, &packet, rte_pktmbuf_mtod(frame, const uint8_t *),
                                        rte_pktmbuf_data_len(frame), FAIRGATE_ETHERNET, now);
        if (status == FAIRGATE_FULL) {
            way->full++;
            rte_pktmbuf_free(frame);
        }
        refuse(way, status);
        free_dropped(way);
    }
    way->received += count;
    return count;
}

// Writes into the frame what the tree decided about it.
static void rewrite(struct rte_mbuf *frame, const fairgate_departure *departure) {
    uint8_t *bytes = rte_pktmbuf_mtod(frame, uint8_t *);
    const size_t size = rte_pktmbuf_data_len(frame);
    if (departure->is_remarked) fairgate_frame_set_dscp(bytes, size, FAIRGATE_ETHERNET, departure->dscp);
    if (departure->is_marked) fairgate_frame_set_ce(bytes, size, FAIRGATE_ETHERNET);
    // After the others, whose checksums are right. FAIRGATE_NO_BIT changes nothing.
    fairgate_frame_flip(bytes, size, departure->corrupted_bit);
}

// Sends what the tree releases. Returns how many frames the port took.
static uint16_t transmit(struct direction *way, uint64_t now) {
    if (way->count == 0) {
        way->first = 0;
        fairgate_departure departure;
        fairgate_status status = FAIRGATE_IDLE;
        while (way->count < BURST &&
               (status = fairgate_node_dequeue(way->node, now, &departure, NULL)) == FAIRGATE_PACKET) {
            struct rte_mbuf *frame = frame_of(departure.cookie);
            rewrite(frame, &departure);
            way->waiting[way->count++] = frame;
        }
        refuse(way, status);
        free_dropped(way);
    }
    const uint16_t taken = rte_eth_tx_burst(way->to, 0, &way->waiting[way->first], way->count);
    way->first += taken;
    way->count -= taken;
    way->sent += taken;
    return taken;
}

static void open_port(uint16_t port, struct rte_mempool *frames) {
    const struct rte_eth_conf conf = {0};
    int error = rte_eth_dev_configure(port, 1, 1, &conf);
    const int socket = rte_eth_dev_socket_id(port);
    if (!error) error = rte_eth_rx_queue_setup(port, 0, RING, socket < 0 ? 0 : socket, NULL, frames);
    if (!error) error = rte_eth_tx_queue_setup(port, 0, RING, socket < 0 ? 0 : socket, NULL);
    if (!error) error = rte_eth_dev_start(port);
    if (error) rte_exit(EXIT_FAILURE, "port %u: %s\n", port, rte_strerror(-error));
    rte_eth_promiscuous_enable(port);
}

static void open_direction(struct direction *way, uint16_t from, uint16_t to, const char *line) {
    char *error = NULL;
    fairgate_tree *tree = fairgate_tree_from_line(line, &error);
    if (!tree) rte_exit(EXIT_FAILURE, "%s\n", error);
    way->from = from;
    way->to = to;
    way->pool = fairgate_pool_new(QUEUED, NULL);
    way->node = fairgate_node_new(tree, way->pool, rte_rdtsc(), &error);
    if (!way->node) rte_exit(EXIT_FAILURE, "%s\n", error);
    fairgate_tree_free(tree);
}

static void close_direction(struct direction *way) {
    fairgate_statistics sum;
    fairgate_node_statistics(way->node, &sum);
    printf("%u -> %u: received %" PRIu64 ", sent %" PRIu64 ", dropped %" PRIu64 ", marked %" PRIu64
           ", queued %" PRIu64 ", no room %" PRIu64 ", mean sojourn %.3f ms\n",
           way->from, way->to, way->received, way->sent, sum.dropped_packets, sum.marked, sum.backlog_packets,
           way->full, sum.dequeued_packets ? sum.sojourn / 1e6 / sum.dequeued_packets : 0.0);
    while (way->count > 0) {
        rte_pktmbuf_free(way->waiting[way->first++]);
        way->count--;
    }
    fairgate_node_flush(way->node);
    free_dropped(way);
    fairgate_node_free(way->node);
    fairgate_pool_free(way->pool);
}

int main(int count, char **words) {
    const int used = rte_eal_init(count, words);
    if (used < 0) rte_exit(EXIT_FAILURE, "EAL: %s\n", rte_strerror(rte_errno));
    count -= used;
    words += used;
    const bool once = count > 1 && !strcmp(words[1], "--once");
    count -= once;
    words += once;
    if (count < 2 || count > 3 || rte_eth_dev_count_avail() != 2) {
        rte_exit(EXIT_FAILURE, "usage: forward EAL-OPTIONS -- [--once] TREE [TREE], with two ports\n");
    }
    struct rte_mempool *frames =
        rte_pktmbuf_pool_create("frames", MBUFS, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (!frames) rte_exit(EXIT_FAILURE, "memory for frames: %s\n", rte_strerror(rte_errno));
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    cycles_start = rte_get_tsc_cycles();
    struct direction ways[2] = {0};
    for (uint16_t way = 0; way < 2; way++) {
        open_port(way, frames);
        open_direction(&ways[way], way, !way, words[count > 2 ? 1 + way : 1]);
    }
    uint64_t last = now_ns();
    while (!stop) {
        const uint64_t now = now_ns();
        uint32_t moved = 0;
        for (uint16_t way = 0; way < 2; way++) {
            moved += take_in(&ways[way], now);
            moved += transmit(&ways[way], now);
        }
        if (moved > 0) last = now;
        if (once && now - last > 1000000000u) break;
    }
    for (uint16_t way = 0; way < 2; way++) close_direction(&ways[way]);
    for (uint16_t port = 0; port < 2; port++) {
        rte_eth_dev_stop(port);
        rte_eth_dev_close(port);
    }
    return rte_eal_cleanup();
}
