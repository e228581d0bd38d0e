// Fairgate in C. Made from crates/fairgate-ffi/src; docs/c.md explains how to use it.
//
// Rules for all functions:
//   * Times are nanoseconds of one clock of the caller. A time is never before an earlier one of a node.
//   * A pool and its nodes are used by one thread at a time.
//   * Strings are UTF-8 and end with a zero byte.
//   * No pointer is NULL, except where it is allowed. The answer to NULL is FAIRGATE_INVALID, NULL, false
//     or nothing. Any other pointer must be valid. An object is not used after it was freed.
//   * The argument error may be NULL. Otherwise *error becomes NULL, or a text that names the place, the
//     rule and the remedy. fairgate_string_free frees the text.

#ifndef FAIRGATE_H
#define FAIRGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version of this interface. It changes when a program must be compiled again. A program can compare it
// with fairgate_abi_version() of the library that it found.
#define FAIRGATE_ABI_VERSION 1

// "Never", as the result of fairgate_node_watchdog and as wait_until.
#define FAIRGATE_NEVER UINT64_MAX

// "No bit is wrong", as corrupted_bit.
#define FAIRGATE_NO_BIT UINT64_MAX

// The link layer of a frame: it begins with an Ethernet header.
#define FAIRGATE_ETHERNET 0

// The link layer of a frame: it begins with an IP header.
#define FAIRGATE_RAW_IP 1

// The answer of a call.
enum fairgate_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Enqueue: the packet is queued. Packets of other flows may have been dropped to make room.
  FAIRGATE_QUEUED = 0,
  // Enqueue: it was dropped, or another packet was dropped instead and the sender should know.
  FAIRGATE_DROPPED = 1,
  // Enqueue: it may or may not be queued, but its flow lost a packet and should slow down.
  FAIRGATE_CONGESTED = 2,
  // Enqueue: no class takes it, and it was dropped.
  FAIRGATE_UNCLASSIFIED = 3,
  // Dequeue and peek: departure is the packet to send.
  FAIRGATE_PACKET = 16,
  // Dequeue and peek: packets are queued, but none may be sent now.
  FAIRGATE_WAIT = 17,
  // Dequeue and peek: nothing is queued.
  FAIRGATE_IDLE = 18,
  // Enqueue: the pool is full. Nothing has changed; the packet is still the caller's.
  FAIRGATE_FULL = -1,
  // An argument is wrong. Nothing has changed. fairgate_node_mistake says what is wrong.
  FAIRGATE_INVALID = -2,
  // An earlier call found a bug in Fairgate. The node and its pool can only be freed.
  FAIRGATE_BROKEN = -3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum fairgate_status fairgate_status;
#else
typedef int32_t fairgate_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A running tree of disciplines at the entrance of a link.
typedef struct fairgate_node fairgate_node;

// The packets of one or more nodes. It lives until it and all its nodes are freed.
typedef struct fairgate_pool fairgate_pool;

// A checked description of a tree of disciplines. Any number of nodes can be made from it.
typedef struct fairgate_tree fairgate_tree;

// Is called for a copy that a discipline made. cookie is that of the original, which the caller has not
// got back yet. It copies what the packet carries, writes the cookie of the copy, and returns true; or it
// returns false, and there is no copy. It must not call functions with this node or its pool, and must not
// leave by an exception or longjmp.
typedef bool (*fairgate_make_copy)(void *context, uint64_t cookie, uint64_t *copy_cookie);

// A packet as the caller describes it. A field that is not used is 0.
typedef struct {
  // The earliest departure in nanoseconds, for fq. 0 means at once.
  uint64_t departure;
  // The hash of the packet's flow: uniform over 64 bits, and keyed if senders may be hostile. 0 is a
  // packet without a flow; fairgate_node_enqueue_frame computes it then.
  uint64_t flow;
  // A number of the caller: a pointer, an index. It comes back with the packet.
  uint64_t cookie;
  // The length on the link in bytes, above 0.
  uint32_t length;
  // The memory that the packet takes, in bytes, for memory limits. 0 means length.
  uint32_t memory;
  // The class that the caller chooses, as in tc: major << 16 | minor. 0 is none.
  uint32_t class_id;
  // A mark for filters.
  uint32_t mark;
  // The priority, 0 to 15.
  uint8_t priority;
  // The DSCP, 0 to 63.
  uint8_t dscp;
  // The two ECN bits: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
  uint8_t ecn;
} fairgate_packet;

// A packet that is to be sent.
typedef struct {
  // The caller's number.
  uint64_t cookie;
  // When it was enqueued.
  uint64_t enqueued_at;
  // The wrong bit of a packet that netem corrupted, one of length bytes: the caller flips it with
  // fairgate_frame_flip. FAIRGATE_NO_BIT for any other packet.
  uint64_t corrupted_bit;
  // The length in bytes.
  uint32_t length;
  // The DSCP. It differs from that of the arrival if is_remarked.
  uint8_t dscp;
  // The ECN bits. They differ from those of the arrival if is_marked.
  uint8_t ecn;
  // Whether a discipline marked it with congestion experienced: the caller writes that into the packet.
  bool is_marked;
  // Whether a discipline changed the DSCP: the caller writes it into the packet.
  bool is_remarked;
} fairgate_departure;

// A packet that a discipline dropped or flushed.
typedef struct {
  // The caller's number.
  uint64_t cookie;
  // Why: "aqm", "queue_limit", "flushed", ... It is valid for ever.
  const char *reason;
  // The length in bytes.
  uint32_t length;
} fairgate_dropped;

// The statistics of a node of a tree. At any time enqueued = dequeued + dropped + flushed + backlog, in
// packets and in bytes.
typedef struct {
  // All enqueued packets, also those that were dropped at once.
  uint64_t enqueued_packets;
  // Their bytes.
  uint64_t enqueued_bytes;
  // Dequeued packets.
  uint64_t dequeued_packets;
  // Their bytes.
  uint64_t dequeued_bytes;
  // Packets dropped here or below, for any reason except a flush.
  uint64_t dropped_packets;
  // Their bytes.
  uint64_t dropped_bytes;
  // Packets that were flushed, or moved to a discipline that replaced this one.
  uint64_t flushed_packets;
  // Their bytes.
  uint64_t flushed_bytes;
  // Queued packets.
  uint64_t backlog_packets;
  // Their bytes.
  uint64_t backlog_bytes;
  // Packets marked with congestion experienced, here or below.
  uint64_t marked;
  // How often nothing could be sent although packets were queued.
  uint64_t overlimits;
  // The sum of the sojourn times of dequeued packets, in nanoseconds, to within 1024 ns for each packet.
  uint64_t sojourn;
} fairgate_statistics;

// Is called for a node of a tree. path names it by class numbers, like "1/20"; the root is "".
// discipline is its name. All pointers are valid during the call. It must not call functions with this
// node or its pool, and must not leave by an exception or longjmp.
typedef void (*fairgate_visit_node)(void *context,
                                    const char *path,
                                    const char *discipline,
                                    const fairgate_statistics *statistics);

// Is called for a reason of drops that occurred. The same rules apply.
typedef void (*fairgate_visit_drops)(void *context, const char *reason, uint64_t packets);

// Is called for a variable of the root discipline, with its usual name. value is a number, a time in
// nanoseconds, or 0 and 1; is_set is false if there is no value yet. The same rules apply.
typedef void (*fairgate_visit_variable)(void *context, const char *name, int64_t value, bool is_set);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the interface of this library.
uint32_t fairgate_abi_version(void);

// Returns the version of Fairgate, like "0.1.0". It is valid for ever.
const char *fairgate_version(void);

// Frees a text that a function returned. NULL is allowed.
void fairgate_string_free(char *text);

// Tells the disciplines of this pool's nodes that the caller makes copies of packets. netem duplicates
// packets only then. From then on the caller calls fairgate_node_enqueue_copies after each enqueue,
// dequeue and peek, before it takes what was dropped. Returns false if the pool is NULL or broken.
bool fairgate_pool_allow_copies(fairgate_pool *pool);

// Enqueues the copies that the last call of this node has asked for, as new packets. make is called for
// each. Returns how many were enqueued: if there is one, a link that was idle dequeues again. Returns 0
// after an error; fairgate_node_mistake names it.
uint32_t fairgate_node_enqueue_copies(fairgate_node *node,
                                      uint64_t now,
                                      fairgate_make_copy make,
                                      void *context);

// Marks a frame with congestion experienced, and updates IPv4's checksum. Returns whether the frame is now
// marked. If it is no IP packet of a sender that supports ECN, returns false and writes nothing.
bool fairgate_frame_set_ce(uint8_t *frame, size_t size, uint32_t link_type);

// Sets the DSCP of a frame, 0 to 63, and updates IPv4's checksum. Returns false and writes nothing if it is
// no IP packet, or if an argument is wrong.
bool fairgate_frame_set_dscp(uint8_t *frame, size_t size, uint32_t link_type, uint8_t dscp);

// Flips a bit of a frame: bit number % 8, counted from the lowest one, of byte number / 8. Checksums
// stay as they are, so that the receiver finds the error. Returns false and writes nothing if the frame has
// no such bit, as for FAIRGATE_NO_BIT.
bool fairgate_frame_flip(uint8_t *frame, size_t size, uint64_t number);

// Makes a node that runs tree, with its packets in pool. All random choices depend on seed, also the
// hash of flows: if senders may be hostile, it must be a number that they can't know. Returns NULL if the
// tree can't be built.
fairgate_node *fairgate_node_new(const fairgate_tree *tree,
                                 const fairgate_pool *pool,
                                 uint64_t seed,
                                 char **error);

// Enqueues a packet. Filters see no addresses. The answer is FAIRGATE_QUEUED, FAIRGATE_DROPPED,
// FAIRGATE_CONGESTED, FAIRGATE_UNCLASSIFIED, FAIRGATE_FULL, or an error. Then the caller takes what was
// dropped:
// fairgate_pool_take_dropped. The packet's own cookie is among it if it was dropped.
fairgate_status fairgate_node_enqueue(fairgate_node *node, const fairgate_packet *packet, uint64_t now);

// Enqueues a packet whose headers are read from its first size bytes: filters see them, DSCP and ECN are
// taken from them, and flow is computed from the five-tuple if it is 0. 128 bytes are enough unless there
// are IPv6 extension headers. link_type is FAIRGATE_ETHERNET or FAIRGATE_RAW_IP. The bytes are not kept.
// Bytes that are no such frame are a packet without addresses.
fairgate_status fairgate_node_enqueue_frame(fairgate_node *node,
                                            const fairgate_packet *packet,
                                            const uint8_t *frame,
                                            size_t size,
                                            uint32_t link_type,
                                            uint64_t now);

// Dequeues the next packet, when the link is free. The answer is FAIRGATE_PACKET: then departure is
// written; FAIRGATE_WAIT: then wait_until, if it is not NULL, is the time for the next call
// (FAIRGATE_NEVER: after the next enqueue); FAIRGATE_IDLE, or an error. Then the caller takes what was
// dropped.
fairgate_status fairgate_node_dequeue(fairgate_node *node,
                                      uint64_t now,
                                      fairgate_departure *departure,
                                      uint64_t *wait_until);

// Shows the packet that the next dequeue will return, now or later. It stays queued. The answer is
// FAIRGATE_PACKET, FAIRGATE_WAIT, FAIRGATE_IDLE, or an error. Then the caller takes what was dropped.
fairgate_status fairgate_node_peek(fairgate_node *node, uint64_t now, fairgate_departure *departure);

// Reports that the link transmits the last dequeued packet until end. Returns whether more packets are
// queued: then the caller dequeues at end; otherwise it need not. Disciplines learn so when the link was
// idle. A caller that always dequeues at the end of a transmission need not call it.
bool fairgate_node_transmits_until(fairgate_node *node, uint64_t end);

// Returns when to dequeue again, in nanoseconds: FAIRGATE_NEVER if the tree does not hold packets back now.
uint64_t fairgate_node_watchdog(const fairgate_node *node);

// Drops all packets with the reason "flushed". Then the caller takes them: fairgate_pool_take_dropped.
fairgate_status fairgate_node_flush(fairgate_node *node);

// Changes the running tree to tree, which may be any other tree. What both have in common stays as it is.
// Packets stay queued: they move to the new disciplines in the order of their flows, and are dropped if a
// new limit has no room for them. The statistics of the root and of classes that still exist go on. Returns
// false if a discipline refuses: then nothing has changed. Then the caller takes what was dropped.
bool fairgate_node_change(fairgate_node *node, const fairgate_tree *tree, uint64_t now, char **error);

// Returns what was wrong in the last call that answered FAIRGATE_INVALID: the argument, and the remedy. It
// is valid for ever. It is empty if there was none, and NULL if node is NULL.
const char *fairgate_node_mistake(const fairgate_node *node);

// Frees a node. Its packets are given up: to get their cookies, flush it and take them first. NULL is
// allowed.
void fairgate_node_free(fairgate_node *node);

// Makes a pool for capacity packets: the queued ones of all its nodes, and the dropped ones that were not
// taken yet. It takes about 128 bytes for each. Returns NULL if capacity is 0.
fairgate_pool *fairgate_pool_new(uint32_t capacity, char **error);

// Returns the number of packets in the pool: the queued ones, and the dropped ones that were not taken yet.
uint32_t fairgate_pool_length(const fairgate_pool *pool);

// Takes the oldest packet that a call dropped or flushed, and frees its place in the pool. Returns false if
// there is none. A program calls it after each enqueue, dequeue, flush and change, until it returns false.
bool fairgate_pool_take_dropped(fairgate_pool *pool, fairgate_dropped *dropped);

// Frees a pool. Its memory stays until its last node is freed. NULL is allowed.
void fairgate_pool_free(fairgate_pool *pool);

// Writes the statistics of the root. Returns false if a pointer is NULL, or the node is broken.
bool fairgate_node_statistics(const fairgate_node *node, fairgate_statistics *statistics);

// Calls each for the root and for every class below it, parents first. Returns false if a pointer is NULL,
// or the node is broken.
bool fairgate_node_visit(const fairgate_node *node, fairgate_visit_node each, void *context);

// Calls each for each reason for which packets were dropped, at the root or below. Returns false if a
// pointer is NULL, or the node is broken.
bool fairgate_node_visit_drops(const fairgate_node *node, fairgate_visit_drops each, void *context);

// Calls each for each variable of the root discipline: CoDel's count, QFQ's virtual time. Returns false if
// a pointer is NULL, or the node is broken.
bool fairgate_node_visit_variables(const fairgate_node *node, fairgate_visit_variable each, void *context);

// Reads a tree from one line: a discipline and its settings, and after each / the discipline that it
// holds.
// fairgate list prints all disciplines. Example: "tbf rate=20mbit burst=5kb / fq_codel target=5ms".
// Returns NULL if the line has mistakes. fairgate_tree_free frees the tree.
fairgate_tree *fairgate_tree_from_line(const char *line, char **error);

// Reads a tree from TOML: the table [queue.NAME] with this name. name may be NULL if there is only one.
// docs/configuration.md describes the language. Returns NULL if the text has mistakes, or has no such tree.
fairgate_tree *fairgate_tree_from_toml(const char *toml, const char *name, char **error);

// Reads a tree from commands of tc: lines of tc qdisc, tc class and tc filter, as in a shell script.
// device may be NULL if all lines are for one device. mtu is the longest IP packet of the device in
// bytes, on which defaults of tc depend; 0 means 1500. Returns NULL if a line has a mistake.
fairgate_tree *fairgate_tree_from_tc(const char *script, const char *device, uint32_t mtu, char **error);

// Returns the tree as TOML with the table [queue.NAME]. fairgate_string_free frees the text. Returns NULL
// if a pointer is NULL.
char *fairgate_tree_to_toml(const fairgate_tree *tree, const char *name);

// Frees a tree. Nodes that were made from it stay. NULL is allowed.
void fairgate_tree_free(fairgate_tree *tree);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FAIRGATE_H */
