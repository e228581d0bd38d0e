// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The C part of sch_fairgate: a qdisc over the queue of the Rust object (fairgate.h).
 *
 * The queue's packets are skbs; nothing is copied. Each call of Rust is guarded: a panic there ends the call.
 * Then the qdisc takes its packets out of the pool and goes on as a plain fifo until it is changed or deleted.
 */
#include <linux/module.h>
#include <linux/version.h>
#include <linux/kernel.h>
#include <linux/if_vlan.h>
#include <linux/jump_label.h>
#include <linux/list_sort.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <net/dsfield.h>
#include <net/gen_stats.h>
#include <net/genetlink.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>
#include <asm/nospec-branch.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#include <net/gso.h>
#endif
#include "fairgate.h"
#include "fairgate_netlink.h"

/* Bytes of headers that are pulled into the linear part: IPv6 with a few extensions and ports. */
#define HEAD 96
/* The longest text of a tree that is kept to be shown. */
#define MOST_TEXT 4096

/* ---- Guarded calls ---- */

/* The entries of Rust, for tests in which one of them panics. NO_ENTRY is one that never does so. */
enum entry { BUILD, ENQUEUE, ENQUEUED, DEQUEUE, FLUSH, STATISTICS, DUMP, CHANGE, DELETE, TREE, NOWHERE,
	     NO_ENTRY };
static const char * const entry_names[] = {
	"build", "enqueue", "enqueued", "dequeue", "flush", "statistics", "dump", "change", "delete", "tree", "",
};
static int panic_in __read_mostly = NOWHERE;
/* Whether a test has ever set `panic_in`. */
static DEFINE_STATIC_KEY_FALSE(panics_on_request);
static atomic_t panics = ATOMIC_INIT(0);

struct guarded {
	void *saved;			/* the stack pointer of the call */
	struct list_head *owner;	/* the blocks that the call allocates */
	bool panicked, no_memory;
	char why[128];			/* the place and text of the panic */
};

/*
 * The call that runs. On the packet path bottom halves are disabled, so a CPU has one. Calls that may sleep
 * are made under a mutex. A call of the first kind may interrupt one of the second kind.
 */
static DEFINE_PER_CPU(struct guarded *, atomic_call);
static DEFINE_MUTEX(sleeping_lock);
static struct guarded *sleeping_call;

static bool is_atomic_call(void)
{
	return in_softirq() || in_hardirq() || irqs_disabled();
}

static struct guarded *running_call(void)
{
	return is_atomic_call() ? this_cpu_read(atomic_call) : sleeping_call;
}

void __noreturn fgk_panic(const char *text, size_t length)
{
	struct guarded *call = running_call();

	if (!call) {
		pr_emerg("panic outside of a guard: %.*s\n", (int)length, text);
		BUG();
	}
	call->panicked = true;
	if (!call->no_memory) {
		scnprintf(call->why, sizeof(call->why), "%.*s", (int)length, text);
		atomic_inc(&panics);
		pr_err("fairgate: a panic was caught: %s\n", call->why);
	}
	fgk_escape(call->saved);
}

/*
 * Calls f(a, b, c), which fgk_escape() may leave. Then no register is as before but the stack pointer: the
 * compiler saves those that it needs.
 */
#ifdef CONFIG_FRAME_POINTER
#error "sch_fairgate needs a kernel with CONFIG_UNWINDER_ORC: with frame pointers a panic can't be caught"
#endif
static __always_inline long guarded(struct guarded *call, void *f, long a, long b, long c)
{
	long result = (long)&call->saved;

	asm volatile("mov %%rsp, (%%rax)\n\t"
		     "call %P[f]"
		     : "+a" (result), "+D" (a), "+S" (b), "+d" (c), ASM_CALL_CONSTRAINT
		     : [f] "i" (f)
		     : "rbx", "rbp", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	return result;
}

static bool is_to_panic(enum entry entry)
{
	return READ_ONCE(panic_in) == entry && cmpxchg(&panic_in, entry, NOWHERE) == entry;
}

/* Bottom halves are disabled. */
#define CALL(call, entry, f, a, b, c) ({ \
	long call_result; \
	this_cpu_write(atomic_call, call); \
	if (static_branch_unlikely(&panics_on_request) && is_to_panic(entry)) \
		call_result = guarded(call, fgk_provoke, 0, 0, 0); \
	else \
		call_result = guarded(call, f, (long)(a), (long)(b), (long)(c)); \
	this_cpu_write(atomic_call, NULL); \
	call_result; \
})

/* The caller may sleep. */
static noinline long call_sleeping(struct guarded *call, enum entry entry, void *f, long a, long b, long c,
				   long d, long e)
{
	long result = (long)&call->saved;

	if (is_to_panic(entry))
		f = fgk_provoke;
	mutex_lock(&sleeping_lock);
	sleeping_call = call;
	{
		/* No function is called between these and their use. */
		register long fourth asm("rcx") = d;
		register long fifth asm("r8") = e;
		register void *target asm("r9") = f;

		asm volatile("mov %%rsp, (%%rax)\n\t"
			     CALL_NOSPEC
			     : "+a" (result), "+D" (a), "+S" (b), "+d" (c), "+r" (fourth), "+r" (fifth),
			       [thunk_target] "+r" (target), ASM_CALL_CONSTRAINT
			     :: "rbx", "rbp", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	}
	sleeping_call = NULL;
	mutex_unlock(&sleeping_lock);
	return result;
}

/* ---- Memory ---- */

/* Stands in front of each block, so that the memory of a queue can be released without its destructors. */
struct block {
	struct list_head list;
	u32 offset;			/* of the block's bytes in the allocation */
	u32 unused;
	u64 size;
};

static DEFINE_SPINLOCK(blocks_lock);
static atomic_long_t allocated = ATOMIC_LONG_INIT(0);

void *fgk_alloc(size_t size, size_t align, bool zero)
{
	size_t room = max(sizeof(struct block), align), total = room + size;
	struct guarded *call = running_call();
	gfp_t gfp = __GFP_NOWARN | (zero ? __GFP_ZERO : 0);
	struct block *block;
	void *raw = NULL;

	/* Only powers of two are aligned to their size. Larger ones are aligned to pages. */
	if (align > 8 && total <= PAGE_SIZE)
		total = roundup_pow_of_two(total);
	if (total >= size && total <= INT_MAX && align <= PAGE_SIZE)
		raw = is_atomic_call() ? kmalloc(total, gfp | GFP_ATOMIC) :
					 kvmalloc(total, gfp | GFP_KERNEL_ACCOUNT);
	if (!raw || !call) {
		if (call)
			call->no_memory = true;
		kvfree(raw);
		return NULL;
	}
	block = raw + room - sizeof(*block);
	block->offset = room;
	block->size = total;
	atomic_long_add(total, &allocated);
	spin_lock_bh(&blocks_lock);
	list_add(&block->list, call->owner);
	spin_unlock_bh(&blocks_lock);
	return raw + room;
}

static void release(struct block *block)
{
	atomic_long_sub(block->size, &allocated);
	kvfree((void *)(block + 1) - block->offset);
}

void fgk_free(void *at)
{
	struct block *block = at - sizeof(*block);

	spin_lock_bh(&blocks_lock);
	list_del(&block->list);
	spin_unlock_bh(&blocks_lock);
	release(block);
}

/* Releases all blocks of a list that no call uses. */
static void release_all(struct list_head *blocks)
{
	struct block *block, *next;

	list_for_each_entry_safe(block, next, blocks, list)
		release(block);
	INIT_LIST_HEAD(blocks);
}

/* ---- Packets ---- */

struct fairgate_sched {
	struct fgk_queue *queue;
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

static LIST_HEAD(queues);
static atomic64_t versions = ATOMIC64_INIT(0);

#define RESULT (FGK_DROPS - 1)

u64 fgk_copy(u64 skb)
{
	struct fairgate_sched *q = container_of(running_call(), struct fairgate_sched, call);
	struct sk_buff *copy = skb_clone((struct sk_buff *)(unsigned long)skb, GFP_ATOMIC);

	if (copy) {
		q->copied_packets++;
		q->copied_bytes += qdisc_pkt_len(copy);
	}
	return (unsigned long)copy;
}

/* Tells the parents of drops. Those of Linux 6.1 must not be told of the last packet while they dequeue. */
static void tell_parents(struct Qdisc *sch, struct fairgate_sched *q)
{
	if ((q->owed_packets | q->owed_bytes) && sch->q.qlen) {
		qdisc_tree_reduce_backlog(sch, q->owed_packets, q->owed_bytes);
		q->owed_packets = 0;
		q->owed_bytes = 0;
	}
}

static noinline void count_each_copy(struct Qdisc *sch, struct fairgate_sched *q)
{
	sch->q.qlen += q->copied_packets;
	sch->qstats.backlog += q->copied_bytes;
	qdisc_tree_reduce_backlog(sch, -(int)q->copied_packets, -(int)q->copied_bytes);
	q->copied_packets = 0;
	q->copied_bytes = 0;
}

static __always_inline void count_copies(struct Qdisc *sch, struct fairgate_sched *q)
{
	if (unlikely(q->copied_packets))
		count_each_copy(sch, q);
}

/* Adds counts, which are all numbers of 64 bits. */
static void add_counts(struct fgk_counts *sum, const struct fgk_counts *counts)
{
	const u64 *from = (const u64 *)counts;
	u64 *to = (u64 *)sum;
	unsigned int i;

	for (i = 0; i < sizeof(*counts) / sizeof(u64); i++)
		to[i] += from[i];
}

static u64 salvaged_at(const struct sk_buff *skb)
{
	u64 at;

	memcpy(&at, qdisc_skb_cb(skb)->data, sizeof(at));
	return at;
}

static int earlier(void *unused, const struct list_head *a, const struct list_head *b)
{
	u64 one = salvaged_at(list_entry(a, struct sk_buff, list)), other =
		salvaged_at(list_entry(b, struct sk_buff, list));

	return one < other ? -1 : one > other;
}

/*
 * Functions of their own: in those with large variables the compiler needs the register of the frame pointer,
 * which a guarded call may lose.
 */
static noinline void read_statistics(struct fairgate_sched *q, struct fgk_counts *counts)
{
	q->call.panicked = false;
	CALL(&q->call, NO_ENTRY, fgk_statistics, q->queue, counts, 0);
}

static noinline struct sk_buff *salvage(struct fairgate_sched *q, u32 *next, u64 *at)
{
	q->call.panicked = false;
	return (void *)CALL(&q->call, NO_ENTRY, fgk_salvage, q->queue, next, at);
}

/*
 * After a panic: takes all packets out of the pool, in the order in which they came. The pool may name a
 * packet twice, if a copy of it was asked for and not made yet. Returns whether `arriving` is among them.
 */
static bool rescue(struct Qdisc *sch, const struct sk_buff *arriving)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	u32 packets = sch->q.qlen, bytes = sch->qstats.backlog, next;
	struct fgk_counts counts = {};
	struct sk_buff *skb, *following;
	bool own = false;
	LIST_HEAD(found);
	u64 at = 0;
	int pass;

	q->panicked = true;
	q->version = atomic64_inc_return(&versions);
	qdisc_watchdog_cancel(&q->watchdog);
	/* The counts go on. What was queued leaves through the fifo, and counts as if it had never been here. */
	read_statistics(q, &counts);
	if (!q->call.panicked) {
		counts.enqueued[0] -= counts.backlog[0];
		counts.enqueued[1] -= counts.backlog[1];
		counts.backlog[0] = 0;
		counts.backlog[1] = 0;
		add_counts(&q->before, &counts);
	}
	for (pass = 0; pass < 2; pass++) {
		next = 0;
		for (;;) {
			skb = salvage(q, &next, &at);
			if (!skb || q->call.panicked)
				break;
			if (pass == 0) {
				at = U64_MAX;
			} else {
				if (salvaged_at(skb) != U64_MAX)
					continue;
				at = min(at, U64_MAX - 1);
				list_add_tail(&skb->list, &found);
				own |= skb == arriving;
			}
			memcpy(qdisc_skb_cb(skb)->data, &at, sizeof(at));
		}
	}
	list_sort(NULL, &found, earlier);
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
	list_for_each_entry_safe(skb, following, &found, list) {
		list_del(&skb->list);
		skb->next = NULL;
		skb->prev = NULL;
		__skb_queue_tail(&q->plain, skb);
		sch->q.qlen++;
		sch->qstats.backlog += qdisc_pkt_len(skb);
	}
	q->copied_packets = 0;
	q->copied_bytes = 0;
	/* The arriving packet is not counted yet: the caller counts it. */
	if (own) {
		sch->q.qlen--;
		sch->qstats.backlog -= qdisc_pkt_len(arriving);
	}
	if (packets != sch->q.qlen || bytes != sch->qstats.backlog)
		qdisc_tree_reduce_backlog(sch, packets - sch->q.qlen, bytes - sch->qstats.backlog);
	pr_err("fairgate: %s: a plain fifo from now on, with %u packets; change or replace it\n",
	       qdisc_dev(sch)->name, sch->q.qlen);
	return own;
}

static void drop(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free)
{
	qdisc_qstats_drop(sch);
	if (to_free)
		__qdisc_drop(skb, to_free);
	else
		kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
}

/* Takes what the last call dropped. Returns whether `arriving` is among it. */
static noinline bool take_dropped(struct Qdisc *sch, struct sk_buff *arriving, struct sk_buff **to_free)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct fgk_leaving out;
	bool own = false;

	while (CALL(&q->call, NO_ENTRY, fgk_take_dropped, q->queue, &out, 0) == 1 && !q->call.panicked) {
		struct sk_buff *skb = (struct sk_buff *)(unsigned long)out.skb;
		unsigned int length = qdisc_pkt_len(skb);

		sch->q.qlen--;
		sch->qstats.backlog -= length;
		if (skb == arriving) {
			own = true;
		} else {
			q->owed_packets++;
			q->owed_bytes += length;
		}
		drop(sch, skb, to_free);
	}
	if (unlikely(q->call.panicked))
		rescue(sch, NULL);
	tell_parents(sch, q);
	return own;
}

static void refuse(struct fairgate_sched *q, const struct sk_buff *skb)
{
	q->refused[0]++;
	q->refused[1] += qdisc_pkt_len(skb);
}

static noinline int enqueue_plain(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	if (q->plain.qlen >= sch->limit) {
		refuse(q, skb);
		drop(sch, skb, to_free);
		return NET_XMIT_DROP;
	}
	__skb_queue_tail(&q->plain, skb);
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

/* A packet with a VLAN tag, in the descriptor or in the bytes. */
static noinline void describe_vlan(struct sk_buff *skb, struct fgk_packet *packet)
{
	u16 tag;

	packet->ethertype = ntohs(skb_protocol(skb, true));
	packet->outer_ethertype = ntohs(skb_vlan_tag_present(skb) ? skb->vlan_proto : skb->protocol);
	packet->vlan = 0;
	if (skb_vlan_tag_present(skb))
		packet->vlan = skb_vlan_tag_get_id(skb);
	else if (!__vlan_get_tag(skb, &tag))
		packet->vlan = tag & VLAN_VID_MASK;
}

static __always_inline void describe_headers(struct sk_buff *skb, struct fgk_packet *packet)
{
	int offset = skb_network_offset(skb), at_hand;

	if (likely(!skb_vlan_tag_present(skb) && !eth_type_vlan(skb->protocol))) {
		packet->ethertype = ntohs(skb->protocol);
		packet->outer_ethertype = packet->ethertype;
		packet->vlan = 0;
	} else {
		describe_vlan(skb, packet);
	}
	at_hand = (int)skb_headlen(skb) - offset;
	if (unlikely(at_hand < HEAD && skb_is_nonlinear(skb) && offset >= 0 && offset < skb->len)) {
		pskb_may_pull(skb, min_t(unsigned int, skb->len, offset + HEAD));
		at_hand = (int)skb_headlen(skb) - offset;
	}
	if (unlikely(offset < 0 || at_hand < 0)) {
		offset = 0;
		at_hand = 0;
	}
	packet->head = skb->data + offset;
	packet->head_length = min(at_hand, 2 * HEAD);
}

/* After a panic in the call that enqueued a packet. */
static noinline int enqueue_rescued(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (!rescue(sch, skb))
		return enqueue_plain(skb, sch, to_free);
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

static noinline int enqueue_refused(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	refuse(qdisc_priv(sch), skb);
	drop(sch, skb, to_free);
	return NET_XMIT_DROP;
}

static __always_inline void describe(struct sk_buff *skb, struct fairgate_sched *q)
{
	struct fgk_packet *packet = &q->packet;

	/* Copies that end before the guarded call, so that the compiler keeps them in registers until then. */
	OPTIMIZER_HIDE_VAR(skb);
	OPTIMIZER_HIDE_VAR(packet);
	packet->skb = (unsigned long)skb;
	packet->stamp = ktime_to_ns(skb->tstamp);
	packet->length = qdisc_pkt_len(skb);
	packet->memory = skb->truesize;
	packet->mark = skb->mark;
	packet->priority = skb->priority;
	if (q->reads)
		describe_headers(skb, packet);
}

static __always_inline int enqueue_one(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct fgk_packet *packet = &q->packet;
	long result;

	if (unlikely(q->panicked))
		return enqueue_plain(skb, sch, to_free);
	describe(skb, q);
	result = CALL(&q->call, ENQUEUE, fgk_enqueue, q->queue, packet, now);
	if (static_branch_unlikely(&panics_on_request))
		CALL(&q->call, ENQUEUED, fgk_needs, q->queue, 0, 0);
	if (unlikely(q->call.panicked))
		return enqueue_rescued(skb, sch, to_free);
	if (unlikely(!(result & RESULT)))
		return enqueue_refused(skb, sch, to_free);
	sch->q.qlen++;
	sch->qstats.backlog += packet->length;
	count_copies(sch, q);
	if (unlikely(result & FGK_DROPS) && take_dropped(sch, skb, to_free))
		return NET_XMIT_DROP;
	return NET_XMIT_SUCCESS;
}

static noinline int enqueue_other(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now)
{
	return enqueue_one(skb, sch, to_free, now);
}

/*
 * Sets the length of a segment as the core sets that of a packet: by the size table of this qdisc, if it has
 * one. (The core's own function is not exported. A table of a qdisc above is not known here.)
 */
static void set_length(struct sk_buff *segment, const struct Qdisc *sch)
{
	const struct qdisc_size_table *stab = rcu_dereference_bh(sch->stab);
	u32 length = segment->len;

	if (stab) {
		const struct tc_sizespec *spec = &stab->szopts;
		int bytes = max_t(int, length + spec->overhead, 0);

		if (spec->tsize) {
			u32 cell = max_t(int, bytes + spec->cell_align, 0) >> spec->cell_log, last = spec->tsize - 1;
			u64 sum = cell <= last ? stab->data[cell] :
				  (u64)stab->data[last] * (cell / spec->tsize) + stab->data[cell % spec->tsize];

			bytes = min_t(u64, sum << spec->size_log, INT_MAX);
		}
		length = max(bytes, 1);
	}
	qdisc_skb_cb(segment)->pkt_len = length;
}

/* Cuts a merged packet, as tbf does. */
static noinline int enqueue_cut(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	netdev_features_t features = netif_skb_features(skb);
	unsigned int queued = 0, bytes = 0, whole = qdisc_pkt_len(skb);
	struct sk_buff *segment, *next;

	segment = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segment))
		return qdisc_drop(skb, sch, to_free);
	q->cut++;
	skb_list_walk_safe(segment, segment, next) {
		unsigned int length;

		skb_mark_not_on_list(segment);
		set_length(segment, sch);
		length = qdisc_pkt_len(segment);
		if (enqueue_other(segment, sch, to_free, now) == NET_XMIT_SUCCESS) {
			queued++;
			bytes += length;
		}
	}
	if (queued)
		qdisc_tree_reduce_backlog(sch, 1 - (int)queued, (int)whole - (int)bytes);
	consume_skb(skb);
	return queued ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

static int fairgate_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	if (q->cuts && skb_is_gso(skb) && !q->panicked)
		return enqueue_cut(skb, sch, to_free, now);
	return enqueue_one(skb, sch, to_free, now);
}

/* Writes what disciplines changed into the packet's bytes. */
static noinline void rewrite(struct sk_buff *skb, const struct fgk_leaving *out)
{
	if (out->marked && !out->remarked)
		INET_ECN_set_ce(skb);
	if (out->remarked) {
		unsigned int length = skb_network_offset(skb);

		switch (skb_protocol(skb, true)) {
		case htons(ETH_P_IP):
			if (!skb_ensure_writable(skb, length + sizeof(struct iphdr)))
				ipv4_change_dsfield(ip_hdr(skb), 0, out->traffic_class);
			break;
		case htons(ETH_P_IPV6):
			if (!skb_ensure_writable(skb, length + sizeof(struct ipv6hdr)))
				ipv6_change_dsfield(ipv6_hdr(skb), 0, out->traffic_class);
			break;
		}
	}
	if (out->corrupted && skb_headlen(skb) && !skb_ensure_writable(skb, skb_headlen(skb)) &&
	    (skb->ip_summed != CHECKSUM_PARTIAL || !skb_checksum_help(skb))) {
		u64 bit = mul_u64_u64_shr(out->corrupted_bit, 8ULL * skb_headlen(skb), 35);

		skb->data[bit / 8] ^= 1 << (bit % 8);
	}
}

static noinline struct sk_buff *dequeue_plain(struct Qdisc *sch)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = __skb_dequeue(&q->plain);

	if (skb) {
		sch->q.qlen--;
		qdisc_qstats_backlog_dec(sch, skb);
		qdisc_bstats_update(sch, skb);
		q->passed++;
	}
	return skb;
}

static struct sk_buff *fairgate_dequeue(struct Qdisc *sch)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = NULL;
	struct fgk_leaving *out = &q->leaving;
	long result;

	if (unlikely(q->panicked))
		return dequeue_plain(sch);
	result = CALL(&q->call, DEQUEUE, fgk_dequeue, q->queue, out, ktime_get_ns());
	if (unlikely(q->call.panicked)) {
		rescue(sch, NULL);
		return dequeue_plain(sch);
	}
	count_copies(sch, q);
	switch (result & RESULT) {
	case 1:
		skb = (struct sk_buff *)(unsigned long)out->skb;
		sch->q.qlen--;
		sch->qstats.backlog -= qdisc_pkt_len(skb);
		if (unlikely(result & FGK_CHANGED))
			rewrite(skb, out);
		qdisc_bstats_update(sch, skb);
		break;
	case 2:
		qdisc_qstats_overlimit(sch);
		if (out->until != U64_MAX)
			qdisc_watchdog_schedule_ns(&q->watchdog, out->until);
		break;
	}
	if (unlikely(result & FGK_DROPS))
		take_dropped(sch, NULL, NULL);
	return skb;
}

static void fairgate_reset(struct Qdisc *sch)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct fgk_leaving out;

	qdisc_watchdog_cancel(&q->watchdog);
	if (q->queue && !q->panicked) {
		local_bh_disable();
		CALL(&q->call, FLUSH, fgk_flush, q->queue, 0, 0);
		while (!q->call.panicked &&
		       CALL(&q->call, NO_ENTRY, fgk_take_dropped, q->queue, &out, 0) == 1) {
			struct sk_buff *skb = (struct sk_buff *)(unsigned long)out.skb;

			rtnl_kfree_skbs(skb, skb);
		}
		if (unlikely(q->call.panicked))
			rescue(sch, NULL);
		local_bh_enable();
	}
	__skb_queue_purge(&q->plain);
	q->owed_packets = 0;
	q->owed_bytes = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

/* ---- Configuration ---- */

static const struct nla_policy policy[TCA_FAIRGATE_MAX + 1] = {
	[TCA_FAIRGATE_PLAN] = { .type = NLA_BINARY },
	[TCA_FAIRGATE_TEXT] = { .type = NLA_NUL_STRING, .len = MOST_TEXT - 1 },
};

static void tell(struct netlink_ext_ack *extack, const char *text)
{
#ifdef NL_SET_ERR_MSG_FMT
	NL_SET_ERR_MSG_FMT(extack, "%.78s", text);
#else
	NL_SET_ERR_MSG(extack, "the plan is refused, the kernel's log says why");
#endif
	pr_info_ratelimited("fairgate: refused: %s\n", text);
}

/* Returns the error of a guarded call that panicked. */
static int why_not(struct guarded *call, struct netlink_ext_ack *extack)
{
	if (call->no_memory) {
		NL_SET_ERR_MSG(extack, "no memory for this tree");
		return -ENOMEM;
	}
	tell(extack, call->why);
	return -EIO;
}

static void look_at_needs(struct fairgate_sched *q)
{
	long needs = fgk_needs(q->queue);

	q->cuts = needs & FGK_CUTS;
	q->reads = needs & FGK_READS;
}

/* Lets the successor take over the packets of the running queue. */
static noinline int take_over(struct Qdisc *sch, struct fgk_successor *successor)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	u64 begun, dropped;
	int error = 0;

	sch_tree_lock(sch);
	begun = ktime_get_ns();
	dropped = sch->qstats.drops;
	CALL(&q->call, CHANGE, fgk_succeed, q->queue, successor, begun);
	if (unlikely(q->call.panicked)) {
		rescue(sch, NULL);
		error = -EIO;
	} else {
		look_at_needs(q);
		take_dropped(sch, NULL, NULL);
		/* What waits may be due at once. */
		qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns());
	}
	q->change_dropped = (u32)(sch->qstats.drops - dropped);
	q->change_ns = ktime_get_ns() - begun;
	sch_tree_unlock(sch);
	return error;
}

/* Lets a new queue begin, with the packets of the plain fifo. */
static void begin(struct Qdisc *sch, struct fgk_queue *queue, struct list_head *blocks)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct sk_buff *skb, *to_free = NULL;
	struct sk_buff_head waiting;
	LIST_HEAD(old);

	__skb_queue_head_init(&waiting);
	sch_tree_lock(sch);
	list_splice_init(&q->blocks, &old);
	list_splice_init(blocks, &q->blocks);
	q->queue = queue;
	look_at_needs(q);
	q->panicked = false;
	q->call.panicked = false;
	q->call.no_memory = false;
	skb_queue_splice_init(&q->plain, &waiting);
	while ((skb = __skb_dequeue(&waiting))) {
		unsigned int length = qdisc_pkt_len(skb);

		sch->q.qlen--;
		sch->qstats.backlog -= length;
		if (enqueue_other(skb, sch, &to_free, ktime_get_ns()) != NET_XMIT_SUCCESS)
			qdisc_tree_reduce_backlog(sch, 1, length);
	}
	sch_tree_unlock(sch);
	kfree_skb_list(to_free);
	release_all(&old);
}

static int configure(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_FAIRGATE_MAX + 1] = {};
	struct guarded *call;
	struct fgk_successor *successor;
	struct fgk_queue *queue = NULL;
	char *text, refusal[160] = "";
	u64 key[2] = { get_random_u64(), get_random_u64() };
	LIST_HEAD(blocks);
	int error = 0;

	if (opt) {
		error = nla_parse_nested_deprecated(tb, TCA_FAIRGATE_MAX, opt, policy, extack);
		if (error < 0)
			return error;
		error = 0;
	}
	call = kzalloc(sizeof(*call), GFP_KERNEL);
	text = tb[TCA_FAIRGATE_TEXT] ? nla_strdup(tb[TCA_FAIRGATE_TEXT], GFP_KERNEL) :
				       kstrdup(tb[TCA_FAIRGATE_PLAN] ? "" : "fq_codel", GFP_KERNEL);
	if (!call || !text) {
		kfree(call);
		kfree(text);
		return -ENOMEM;
	}
	call->owner = &blocks;
	successor = (void *)call_sleeping(call, BUILD, fgk_plan,
		(long)(tb[TCA_FAIRGATE_PLAN] ? nla_data(tb[TCA_FAIRGATE_PLAN]) : NULL),
		tb[TCA_FAIRGATE_PLAN] ? nla_len(tb[TCA_FAIRGATE_PLAN]) : 0,
		key[0] ^ key[1], (long)refusal, sizeof(refusal));
	if (call->panicked) {
		error = why_not(call, extack);
		goto failed;
	}
	if (!successor)
		goto refused;

	if (q->queue && !q->panicked) {
		if (!call_sleeping(call, NO_ENTRY, fgk_check_succession, (long)q->queue, (long)successor,
				   (long)refusal, sizeof(refusal), 0) && !call->panicked)
			goto refused;
		if (call->panicked) {
			error = why_not(call, extack);
			goto failed;
		}
		error = take_over(sch, successor);
		/* From now on both trees hold memory of both: that of the queue goes with the queue. */
		spin_lock_bh(&blocks_lock);
		list_splice_init(&blocks, &q->blocks);
		spin_unlock_bh(&blocks_lock);
		if (error) {
			why_not(&q->call, extack);
			goto failed;
		}
		call_sleeping(call, NO_ENTRY, fgk_forget, (long)successor, 0, 0, 0, 0);
	} else {
		queue = (void *)call_sleeping(call, NO_ENTRY, fgk_start, (long)successor, (long)key, 0, 0, 0);
		if (call->panicked) {
			error = why_not(call, extack);
			goto failed;
		}
		sch->limit = fgk_slots(queue);
		begin(sch, queue, &blocks);
	}
	swap(q->text, text);
	q->version = atomic64_inc_return(&versions);
	goto out;

refused:
	tell(extack, refusal);
	error = -EINVAL;
failed:
	/* Nothing has changed. The memory goes without destructors. */
	release_all(&blocks);
out:
	kfree(text);
	kfree(call);
	return error;
}

static int fairgate_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	list_add(&q->list, &queues);
	INIT_LIST_HEAD(&q->blocks);
	q->call.owner = &q->blocks;
	__skb_queue_head_init(&q->plain);
	qdisc_watchdog_init(&q->watchdog, sch);
	return configure(sch, opt, extack);
}

static void fairgate_destroy(struct Qdisc *sch)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	list_del(&q->list);
	qdisc_watchdog_cancel(&q->watchdog);
	if (q->queue && !q->panicked)
		call_sleeping(&q->call, DELETE, fgk_stop, (long)q->queue, 0, 0, 0, 0);
	release_all(&q->blocks);
	kfree(q->text);
}

/* ---- What is shown ---- */

static int fairgate_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct nlattr *options = nla_nest_start_noflag(skb, TCA_OPTIONS);

	/* A long text is left out, so that the message has room for the statistics. */
	if (!options || (q->text && strlen(q->text) < 1024 && nla_put_string(skb, TCA_FAIRGATE_TEXT, q->text)))
		return -EMSGSIZE;
	return nla_nest_end(skb, options);
}

/*
 * Reads counts under the lock: those of the root, or those of the first class from `least` on, whose number it
 * returns. Returns 0 after a panic.
 */
static long read_counts(struct Qdisc *sch, enum entry entry, u64 least, struct fgk_counts *counts)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	long result = 0;

	sch_tree_lock(sch);
	if (q->queue && !q->panicked) {
		if (least)
			result = CALL(&q->call, entry, fgk_class, q->queue, least, counts);
		else
			CALL(&q->call, entry, fgk_statistics, q->queue, counts, 0);
		if (unlikely(q->call.panicked)) {
			rescue(sch, NULL);
			result = 0;
		}
	}
	sch_tree_unlock(sch);
	return result;
}

static void read_stats(struct Qdisc *sch, struct fairgate_stats *stats)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	stats->version = FAIRGATE_STATS_VERSION;
	read_counts(sch, STATISTICS, 0, &stats->counts);
	stats->panicked = q->panicked;
	add_counts(&stats->counts, &q->before);
	stats->refused[0] = q->refused[0];
	stats->refused[1] = q->refused[1];
	stats->cut = q->cut;
	stats->passed = q->passed;
	stats->change_ns = q->change_ns;
	stats->change_dropped = q->change_dropped;
}

static int fairgate_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct fairgate_stats stats = {};

	read_stats(sch, &stats);
	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

static struct Qdisc *fairgate_leaf(struct Qdisc *sch, unsigned long class)
{
	return NULL;
}

static unsigned long fairgate_find(struct Qdisc *sch, u32 classid)
{
	u32 minor = TC_H_MIN(classid);

	return minor && read_counts(sch, NO_ENTRY, minor, NULL) == minor ? minor : 0;
}

static void fairgate_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	long minor = 0;

	while (!arg->stop) {
		minor = read_counts(sch, DUMP, minor + 1, NULL);
		if (!minor)
			break;
		if (arg->count >= arg->skip && arg->fn(sch, minor, arg) < 0)
			arg->stop = 1;
		else
			arg->count++;
	}
}

static int fairgate_dump_class(struct Qdisc *sch, unsigned long class, struct sk_buff *skb, struct tcmsg *tcm)
{
	tcm->tcm_handle |= TC_H_MIN(class);
	return 0;
}

static int fairgate_dump_class_stats(struct Qdisc *sch, unsigned long class, struct gnet_dump *d)
{
	struct gnet_stats_basic_sync basic;
	struct gnet_stats_queue queue = {};
	struct fgk_counts counts = {};

	if (read_counts(sch, NO_ENTRY, class, &counts) != class)
		return 0;
	gnet_stats_basic_sync_init(&basic);
	u64_stats_set(&basic.bytes, counts.dequeued[1]);
	u64_stats_set(&basic.packets, counts.dequeued[0]);
	queue.backlog = counts.backlog[1];
	queue.drops = counts.dropped[0];
	queue.overlimits = counts.overlimits;
	if (gnet_stats_copy_basic(d, NULL, &basic, false) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &queue, counts.backlog[0]) < 0)
		return -1;
	return 0;
}

static const struct Qdisc_class_ops fairgate_class_ops = {
	.leaf = fairgate_leaf,
	.find = fairgate_find,
	.walk = fairgate_walk,
	.dump = fairgate_dump_class,
	.dump_stats = fairgate_dump_class_stats,
};

static struct Qdisc_ops fairgate_ops __read_mostly = {
	.id = "fairgate",
	.cl_ops = &fairgate_class_ops,
	.priv_size = sizeof(struct fairgate_sched),
	.enqueue = fairgate_enqueue,
	.dequeue = fairgate_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = fairgate_init,
	.reset = fairgate_reset,
	.destroy = fairgate_destroy,
	.change = configure,
	.dump = fairgate_dump,
	.dump_stats = fairgate_dump_stats,
	.owner = THIS_MODULE,
};

/* ---- Everything in a tree, for the program ---- */

/* The longest message of a reading: a part has at most 14,336 bytes. */
#define MOST_READ SZ_16K

struct reading {
	struct guarded call;
	struct list_head blocks;
	struct fgk_reading *reading;	/* NULL before the first part */
	struct fgk_part part;
	struct fairgate_stats stats;
	u64 version;			/* of the tree that is read */
	bool begun;
};

static struct genl_family genl_family;

/* Under rtnl, as all that uses the list. */
static struct Qdisc *find_queue(const struct net *net, u32 index, u32 handle)
{
	struct fairgate_sched *q;

	list_for_each_entry(q, &queues, list) {
		struct Qdisc *sch = q->watchdog.qdisc;
		struct net_device *dev = qdisc_dev(sch);

		if (dev->ifindex == index && sch->handle == handle && net_eq(dev_net(dev), net))
			return sch;
	}
	return NULL;
}

static noinline void read_part(struct Qdisc *sch, struct reading *r)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	sch_tree_lock(sch);
	r->part.length = 0;
	r->part.now = ktime_get_ns();
	if (!q->panicked)
		CALL(&r->call, TREE, fgk_read_part, r->reading, q->queue, &r->part);
	sch_tree_unlock(sch);
}

/*
 * Reads the next part. It changes nothing in the queue, so that a panic ends the reading only. Returns an
 * error.
 */
static int read_next(struct Qdisc *sch, struct reading *r)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	if (!r->begun) {
		read_stats(sch, &r->stats);
		r->version = q->version;
		if (!q->panicked)
			r->reading = (void *)call_sleeping(&r->call, NO_ENTRY, fgk_read, (long)q->queue, 0, 0, 0, 0);
	}
	if (r->version != q->version)
		return -EAGAIN;
	r->part.length = 0;
	if (r->reading && !r->call.panicked)
		read_part(sch, r);
	if (r->call.panicked)
		return r->call.no_memory ? -ENOMEM : -EIO;
	return 0;
}

static int reading_start(struct netlink_callback *cb)
{
	struct reading *r;

	if (!nlmsg_find_attr(cb->nlh, GENL_HDRLEN, FAIRGATE_A_DEVICE) ||
	    !nlmsg_find_attr(cb->nlh, GENL_HDRLEN, FAIRGATE_A_HANDLE))
		return -EINVAL;
	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return -ENOMEM;
	INIT_LIST_HEAD(&r->blocks);
	r->call.owner = &r->blocks;
	cb->args[0] = (long)r;
	cb->min_dump_alloc = MOST_READ;
	return 0;
}

static int reading_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	u32 index = nla_get_u32(nlmsg_find_attr(cb->nlh, GENL_HDRLEN, FAIRGATE_A_DEVICE));
	u32 handle = nla_get_u32(nlmsg_find_attr(cb->nlh, GENL_HDRLEN, FAIRGATE_A_HANDLE));
	struct reading *r = (void *)cb->args[0];
	struct Qdisc *sch;
	void *message;
	int error;

	rtnl_lock();
	sch = find_queue(sock_net(cb->skb->sk), index, handle);
	error = sch ? read_next(sch, r) : -ENOENT;
	rtnl_unlock();
	if (error || (r->begun && !r->part.length))
		return error;
	message = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &genl_family, NLM_F_MULTI,
			      FAIRGATE_CMD_READ);
	if (!message || (!r->begun && nla_put(skb, FAIRGATE_A_STATS, sizeof(r->stats), &r->stats)) ||
	    nla_put(skb, FAIRGATE_A_PART, r->part.length, r->part.bytes))
		return -EMSGSIZE;
	genlmsg_end(skb, message);
	r->begun = true;
	return skb->len;
}

/* The memory goes without destructors. */
static int reading_done(struct netlink_callback *cb)
{
	struct reading *r = (void *)cb->args[0];

	if (r) {
		release_all(&r->blocks);
		kfree(r);
	}
	return 0;
}

static const struct nla_policy genl_policy[FAIRGATE_A_MAX + 1] = {
	[FAIRGATE_A_DEVICE] = { .type = NLA_U32 },
	[FAIRGATE_A_HANDLE] = { .type = NLA_U32 },
};

static const struct genl_ops genl_ops[] = {
	{
		.cmd = FAIRGATE_CMD_READ,
		.flags = GENL_UNS_ADMIN_PERM,
		.start = reading_start,
		.dumpit = reading_dump,
		.done = reading_done,
	},
};

static struct genl_family genl_family __ro_after_init = {
	.name = FAIRGATE_GENL_NAME,
	.version = FAIRGATE_GENL_VERSION,
	.maxattr = FAIRGATE_A_MAX,
	.policy = genl_policy,
	.netnsok = true,
	.module = THIS_MODULE,
	.ops = genl_ops,
	.n_ops = ARRAY_SIZE(genl_ops),
};

/* ---- The module ---- */

static int set_panic_in(const char *value, const struct kernel_param *param)
{
	int entry = sysfs_match_string(entry_names, value);

	if (entry < 0)
		return entry;
	if (entry != NOWHERE)
		static_branch_enable(&panics_on_request);
	WRITE_ONCE(panic_in, entry);
	return 0;
}

static int get_panic_in(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", entry_names[READ_ONCE(panic_in)]);
}

static int get_panics(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&panics));
}

static int get_allocated(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%ld\n", atomic_long_read(&allocated));
}

static const struct kernel_param_ops panic_in_ops = { .set = set_panic_in, .get = get_panic_in };
static const struct kernel_param_ops panics_ops = { .get = get_panics };
static const struct kernel_param_ops allocated_ops = { .get = get_allocated };

module_param_cb(panic_in, &panic_in_ops, NULL, 0600);
MODULE_PARM_DESC(panic_in, "a test: the next call of this entry panics");
module_param_cb(panics, &panics_ops, NULL, 0444);
MODULE_PARM_DESC(panics, "panics that were caught");
module_param_cb(allocated, &allocated_ops, NULL, 0444);
MODULE_PARM_DESC(allocated, "bytes that trees and pools occupy");

static int __init fairgate_module_init(void)
{
	int error = genl_register_family(&genl_family);

	if (error)
		return error;
	error = register_qdisc(&fairgate_ops);
	if (error)
		genl_unregister_family(&genl_family);
	return error;
}

static void __exit fairgate_module_exit(void)
{
	unregister_qdisc(&fairgate_ops);
	genl_unregister_family(&genl_family);
	WARN(atomic_long_read(&allocated), "fairgate: %ld bytes are not released\n", atomic_long_read(&allocated));
}

module_init(fairgate_module_init);
module_exit(fairgate_module_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Fairgate's queueing disciplines");
MODULE_ALIAS("net-sch-fairgate");
