/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the Rust object and the C part of the module call of each other; src/abi.rs has the other side. */
#ifndef FAIRGATE_H
#define FAIRGATE_H
#include <linux/types.h>

struct fgk_queue;
struct fgk_prepared;
struct fgk_reading;

struct fgk_packet {
	u64 skb, stamp;
	const u8 *head;			/* from the network header on */
	u32 head_length, length, memory, mark, priority;
	u16 ethertype, outer_ethertype, vlan;
};

struct fgk_leaving {
	u64 skb;
	u64 until;			/* when to ask again */
	u64 corrupted_bit;		/* of 2^35 */
	bool marked, remarked, corrupted;
	u8 traffic_class, reason;
};

struct fgk_part {
	const u8 *bytes;
	u32 length;
	u64 now;
};

struct fgk_refusal {
	char text[160];
	u32 node;			/* the discipline of the plan that it is about, or FGK_NO_NODE */
};

#define FGK_NO_NODE 0xffffffff
#define FGK_REASONS 24

struct fgk_counts {			/* pairs: packets, bytes */
	u64 enqueued[2], dequeued[2], dropped[2], flushed[2], backlog[2];
	u64 marked, overlimits, sojourn_ns;
	u64 reasons[FGK_REASONS];
};

struct fgk_class {
	u32 number;			/* 0: there is none */
	u32 parent;			/* 0: no class is above it */
	struct fgk_counts counts;
};

/*
 * Rust. The results of fgk_enqueue and fgk_dequeue have FGK_DROPS added if packets were dropped, and that of
 * fgk_dequeue has FGK_CHANGED added if bytes of the packet are to be changed: only then all of fgk_leaving is
 * written. fgk_needs returns FGK_CUTS if merged packets are to be cut, and FGK_READS if headers are read:
 * else fgk_enqueue needs of fgk_packet only skb, stamp, length, memory, mark, priority.
 */
#define FGK_DROPS 4
#define FGK_CHANGED 8
#define FGK_CUTS 1
#define FGK_READS 2
struct fgk_prepared *fgk_prepare(const struct fgk_prepared *running, const u8 *bytes, size_t length, u64 seed,
				 struct fgk_refusal *refusal);
void fgk_settle(struct fgk_prepared *prepared, struct fgk_prepared *before);
struct fgk_queue *fgk_start(struct fgk_prepared *prepared, const u64 key[2]);
u32 fgk_slots(const struct fgk_queue *queue);
long fgk_needs(const struct fgk_queue *queue);
void fgk_stop(struct fgk_queue *queue, struct fgk_prepared *running);
long fgk_enqueue(struct fgk_queue *queue, const struct fgk_packet *packet, u64 now);
long fgk_dequeue(struct fgk_queue *queue, struct fgk_leaving *into, u64 now);
long fgk_take_dropped(struct fgk_queue *queue, struct fgk_leaving *into, u64 unused);
void fgk_flush(struct fgk_queue *queue);
long fgk_succeed(struct fgk_queue *queue, struct fgk_prepared *prepared, u64 now);
void fgk_statistics(const struct fgk_queue *queue, struct fgk_counts *into);
void fgk_class(const struct fgk_queue *queue, const struct fgk_prepared *running, struct fgk_class *into);
struct fgk_reading *fgk_read(const struct fgk_queue *queue);
long fgk_read_part(struct fgk_reading *reading, const struct fgk_queue *queue, struct fgk_part *part);
u64 fgk_salvage(const struct fgk_queue *queue, u32 *next, u64 *at);
void fgk_provoke(void);

/* C */
void *fgk_alloc(size_t size, size_t align, bool zero);
void fgk_free(void *at);
u64 fgk_copy(u64 skb);
void __noreturn fgk_panic(const char *text, size_t length);

/* guard.S: returns 0 from the call that was made when the stack pointer was `saved`. */
void __noreturn fgk_escape(void *saved);
#endif
