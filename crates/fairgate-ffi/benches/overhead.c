// The cost of pairs of enqueue and dequeue through the C ABI: prints nanoseconds a call.
// Arguments: the tree, the number of pairs, the backlog in packets.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fairgate.h"

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    const uint64_t pairs = strtoull(words[2], NULL, 10);
    const uint64_t backlog = strtoull(words[3], NULL, 10);
    char *error = NULL;
    fairgate_tree *tree = fairgate_tree_from_line(words[1], &error);
    if (!tree) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    fairgate_pool *pool = fairgate_pool_new((uint32_t)backlog + 1, NULL);
    fairgate_node *node = fairgate_node_new(tree, pool, 1, NULL);
    fairgate_packet packet = {.length = 1514};
    fairgate_departure departure;
    for (uint64_t number = 0; number < backlog; number++) {
        packet.flow = (number + 1) * 0x9e3779b97f4a7c15u;
        if (fairgate_node_enqueue(node, &packet, 0) != FAIRGATE_QUEUED) return 1;
    }
    const uint64_t begin = clock_ns();
    for (uint64_t number = 0; number < pairs; number++) {
        packet.flow = (number % backlog + 1) * 0x9e3779b97f4a7c15u;
        packet.cookie = number;
        if (fairgate_node_enqueue(node, &packet, number) != FAIRGATE_QUEUED) return 1;
        if (fairgate_node_dequeue(node, number, &departure, NULL) != FAIRGATE_PACKET) return 1;
    }
    printf("%.3f\n", (double)(clock_ns() - begin) / (double)(2 * pairs));
    fairgate_node_free(node);
    fairgate_pool_free(pool);
    fairgate_tree_free(tree);
    return 0;
}
