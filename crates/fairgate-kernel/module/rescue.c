// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * After a panic: the packets are taken out of the pool, and the qdisc goes on as a plain fifo until it is
 * changed or deleted.
 */
#include <linux/list_sort.h>
#include "qdisc.h"

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

/* These are functions of their own because of the large variables of their caller. */
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
 * Packets go on in the order in which they came. The pool may name one twice, if a copy of it was asked for
 * and not made yet.
 */
bool fairgate_rescue(struct Qdisc *sch, const struct sk_buff *arriving)
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
	q->version = fairgate_next_version();
	qdisc_watchdog_cancel(&q->watchdog);
	/* The counts go on. What was queued leaves through the fifo, and counts as if it had never been here. */
	read_statistics(q, &counts);
	if (!q->call.panicked) {
		counts.enqueued[0] -= counts.backlog[0];
		counts.enqueued[1] -= counts.backlog[1];
		counts.backlog[0] = 0;
		counts.backlog[1] = 0;
		fairgate_add_counts(&q->before, &counts);
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

int fairgate_enqueue_plain(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	if (q->plain.qlen >= sch->limit)
		return fairgate_refuse(skb, sch, to_free);
	__skb_queue_tail(&q->plain, skb);
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

struct sk_buff *fairgate_dequeue_plain(struct Qdisc *sch)
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
