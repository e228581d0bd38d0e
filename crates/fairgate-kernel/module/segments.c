// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Merged packets (GSO), which are cut before a tree that shapes or counts packets.
 */
#include <linux/err.h>
#include <linux/netdevice.h>
#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#include <net/gso.h>
#endif
#include "qdisc.h"

/*
 * The size table by which the core has set the length of a packet for this qdisc: its own, or that of the
 * root above it. (The tables of qdiscs between them can't be found here.)
 */
static const struct qdisc_size_table *table_of(const struct Qdisc *sch)
{
	const struct qdisc_size_table *own = rcu_dereference_bh(sch->stab);
	const struct Qdisc *root = qdisc_root_bh(sch);

	return own || root == sch ? own : rcu_dereference_bh(root->stab);
}

/* Sets the length of a segment as the core sets that of a packet. (Its function is not exported.) */
static void set_length(struct sk_buff *segment, const struct Qdisc *sch)
{
	const struct qdisc_size_table *stab = table_of(sch);
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

/* As tbf does. */
int fairgate_enqueue_cut(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now)
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
		if (fairgate_enqueue_one(segment, sch, to_free, now) == NET_XMIT_SUCCESS) {
			queued++;
			bytes += length;
		}
	}
	if (queued)
		qdisc_tree_reduce_backlog(sch, 1 - (int)queued, (int)whole - (int)bytes);
	consume_skb(skb);
	return queued ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}
