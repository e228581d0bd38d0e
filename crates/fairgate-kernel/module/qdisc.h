/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the C files of the module share: a qdisc, guarded calls of Rust, and what a file does for others. */
#ifndef FAIRGATE_QDISC_H
#define FAIRGATE_QDISC_H
#include <linux/atomic.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include "fairgate.h"
#include "fairgate_netlink.h"

/* What older kernels have under another name, or not at all. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
#define in_hardirq() in_irq()
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0)
#define kfree_skb_reason(skb, reason) kfree_skb(skb)
#endif

/* ---- Guarded calls: panic.c ---- */

/* The entries of Rust, for tests in which one of them panics. NO_ENTRY is one that never does so. */
enum entry { BUILD, ENQUEUE, ENQUEUED, DEQUEUE, FLUSH, STATISTICS, DUMP, CHANGE, DELETE, TREE, NOWHERE,
	     NO_ENTRY };

struct guarded {
	void *saved;			/* the stack pointer of the call */
#ifdef CONFIG_FRAME_POINTER
	void *frame;			/* the frame pointer, right behind it */
#endif
	struct list_head *owner;	/* the blocks that the call allocates */
	bool panicked, no_memory;
	char why[128];			/* the place and text of the panic */
};

DECLARE_PER_CPU(struct guarded *, fairgate_atomic_call);
/* Whether a test has ever asked for something (tested.c). */
DECLARE_STATIC_KEY_FALSE(fairgate_is_tested);
/* Does what a test has asked for of this entry, and calls f(a, b, c, d, e) or what panics. */
long fairgate_call_tested(struct guarded *call, enum entry entry, void *f, long a, long b, long c, long d,
			  long e);
bool fairgate_allocation_is_to_fail(void);

/* Returns the call that runs on this CPU, or NULL. */
struct guarded *fairgate_running_call(void);

/* Calls f(a, b, c, d, e), as guarded() does. */
long fairgate_call_any(struct guarded *call, void *f, long a, long b, long c, long d, long e);

/* The same. The caller may sleep. */
long fairgate_call_sleeping(struct guarded *call, enum entry entry, void *f, long a, long b, long c, long d,
			    long e);

/*
 * Calls f(a, b, c), which fgk_escape() may leave. Then no register is as before but the stack pointer: the
 * compiler saves those that it needs. A function with large variables needs that of the frame pointer, which
 * it would not save: there call a function of its own. Where all functions have frame pointers, the compiler
 * saves it in none, and so the call does. (In memory: objtool takes `pop %rbp` for the end of a frame.)
 */
#ifdef CONFIG_FRAME_POINTER
static_assert(offsetof(struct guarded, saved) == 0 && offsetof(struct guarded, frame) == 8);
#define KEEP_FRAME "mov %%rbp, 8(%%rax)\n\t" "push %%rax\n\t"
#define TAKE_FRAME "\n\tpop %%rcx" "\n\tmov 8(%%rcx), %%rbp"
#define LOST_FRAME
#else
#define KEEP_FRAME
#define TAKE_FRAME
#define LOST_FRAME "rbp",
#endif
static __always_inline long guarded(struct guarded *call, void *f, long a, long b, long c)
{
	long result = (long)&call->saved;

	asm volatile(KEEP_FRAME
		     "mov %%rsp, (%%rax)\n\t"
		     "call %P[f]"
		     TAKE_FRAME
		     : "+a" (result), "+D" (a), "+S" (b), "+d" (c), ASM_CALL_CONSTRAINT
		     : [f] "i" (f)
		     : LOST_FRAME "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	return result;
}

/* Calls f(a, b, c). Bottom halves are disabled. */
#define CALL(call, entry, f, a, b, c) ({ \
	long call_result; \
	this_cpu_write(fairgate_atomic_call, call); \
	if (static_branch_unlikely(&fairgate_is_tested)) \
		call_result = fairgate_call_tested(call, entry, f, (long)(a), (long)(b), (long)(c), 0, 0); \
	else \
		call_result = guarded(call, f, (long)(a), (long)(b), (long)(c)); \
	this_cpu_write(fairgate_atomic_call, NULL); \
	call_result; \
})

/* ---- Memory: memory.c ---- */

static inline bool is_atomic_call(void)
{
	return in_softirq() || in_hardirq() || irqs_disabled();
}

/* Held while blocks come to a list or leave it. */
extern spinlock_t fairgate_blocks_lock;

/* Releases all blocks of a list that no call uses. */
void fairgate_release_blocks(struct list_head *blocks);

/* Returns the bytes of all blocks. */
long fairgate_allocated(void);

/* ---- A qdisc ---- */

struct fairgate_sched {
	struct fgk_queue *queue;
	struct fgk_prepared *running;	/* what it runs; the packet path does not use it */
	bool panicked, cuts, reads;
	struct guarded call;
	/* Arguments, which the compiler would clear on the stack. Only what the call needs is written. */
	struct fgk_packet packet;
	struct fgk_leaving leaving;
	struct qdisc_watchdog watchdog;
	u32 owed_packets, owed_bytes;	/* drops that the parents do not know of yet */
	u32 copied_packets, copied_bytes;
	struct list_head blocks;
	struct sk_buff_head plain;	/* the fifo after a panic */
	u64 refused[2], cut, passed, change_ns, change_dropped;
	struct fgk_counts before;	/* of trees that panicked */
	char *text;
	struct list_head list;		/* of all queues, under rtnl */
	u64 version;			/* another one for each tree */
};

/* qdisc.c */
extern struct list_head fairgate_queues;

/* packet.c */
int fairgate_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *fairgate_dequeue(struct Qdisc *sch);
void fairgate_reset(struct Qdisc *sch);
/* Enqueues a packet as it is, also if it is a merged one. */
int fairgate_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now);
/* Drops a packet for which there is no room. Returns NET_XMIT_DROP. */
int fairgate_refuse(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
/* Takes what the last call dropped. Returns whether `arriving` is among it. */
bool fairgate_take_dropped(struct Qdisc *sch, struct sk_buff *arriving, struct sk_buff **to_free);

/* segments.c: cuts a merged packet, and enqueues its segments. */
int fairgate_enqueue_cut(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now);

/* rescue.c: after a panic, takes all packets out of the pool. Returns whether `arriving` is among them. */
bool fairgate_rescue(struct Qdisc *sch, const struct sk_buff *arriving);
int fairgate_enqueue_plain(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *fairgate_dequeue_plain(struct Qdisc *sch);

/* configure.c: builds a tree, and lets it take the place of the one that runs. */
int fairgate_configure(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack);
/* Returns a number for a tree that no other has had. */
u64 fairgate_next_version(void);

/* statistics.c */
extern const struct Qdisc_class_ops fairgate_class_ops;
int fairgate_dump(struct Qdisc *sch, struct sk_buff *skb);
int fairgate_dump_stats(struct Qdisc *sch, struct gnet_dump *d);
void fairgate_add_counts(struct fgk_counts *sum, const struct fgk_counts *counts);
void fairgate_read_stats(struct Qdisc *sch, struct fairgate_stats *stats);

/* nodes.c: reads everything in a tree, for the program. */
extern struct genl_family fairgate_genl;
#endif
