// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The path of a packet: described for Rust, enqueued, dropped or dequeued, rewritten. Packets are skbs, and
 * nothing is copied. What is rare is in functions of its own, so that the rest needs few registers.
 */
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include "qdisc.h"

/* Bytes of headers that are pulled into the linear part: IPv6 with a few extensions and ports. */
#define HEAD 96

/* Of a result of fgk_enqueue or fgk_dequeue: what it is without FGK_DROPS and FGK_CHANGED. */
#define RESULT (FGK_DROPS - 1)

/* ---- Copies that a discipline asks for ---- */

u64 fgk_copy(u64 skb)
{
	struct fairgate_sched *q = container_of(fairgate_running_call(), struct fairgate_sched, call);
	struct sk_buff *copy = skb_clone((struct sk_buff *)(unsigned long)skb, GFP_ATOMIC);

	if (copy) {
		q->copied_packets++;
		q->copied_bytes += qdisc_pkt_len(copy);
	}
	return (unsigned long)copy;
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

/* ---- In ---- */

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

/* After a panic in the call that enqueued a packet. */
static noinline int enqueue_rescued(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (!fairgate_rescue(sch, skb))
		return fairgate_enqueue_plain(skb, sch, to_free);
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

static __always_inline int enqueue_one(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
				       u64 now)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct fgk_packet *packet = &q->packet;
	long result;

	if (unlikely(q->panicked))
		return fairgate_enqueue_plain(skb, sch, to_free);
	describe(skb, q);
	result = CALL(&q->call, ENQUEUE, fgk_enqueue, q->queue, packet, now);
	if (static_branch_unlikely(&fairgate_is_tested))
		CALL(&q->call, ENQUEUED, fgk_needs, q->queue, 0, 0);
	if (unlikely(q->call.panicked))
		return enqueue_rescued(skb, sch, to_free);
	if (unlikely(!(result & RESULT)))
		return fairgate_refuse(skb, sch, to_free);
	sch->q.qlen++;
	sch->qstats.backlog += packet->length;
	count_copies(sch, q);
	if (unlikely(result & FGK_DROPS) && fairgate_take_dropped(sch, skb, to_free))
		return NET_XMIT_DROP;
	return NET_XMIT_SUCCESS;
}

noinline int fairgate_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now)
{
	return enqueue_one(skb, sch, to_free, now);
}

int fairgate_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	if (q->cuts && skb_is_gso(skb) && !q->panicked)
		return fairgate_enqueue_cut(skb, sch, to_free, now);
	return enqueue_one(skb, sch, to_free, now);
}

/* ---- Out ---- */

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

struct sk_buff *fairgate_dequeue(struct Qdisc *sch)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = NULL;
	struct fgk_leaving *out = &q->leaving;
	long result;

	if (unlikely(q->panicked))
		return fairgate_dequeue_plain(sch);
	result = CALL(&q->call, DEQUEUE, fgk_dequeue, q->queue, out, ktime_get_ns());
	if (unlikely(q->call.panicked)) {
		fairgate_rescue(sch, NULL);
		return fairgate_dequeue_plain(sch);
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
		fairgate_take_dropped(sch, NULL, NULL);
	return skb;
}

/* ---- Dropped ---- */

static void drop(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free)
{
	qdisc_qstats_drop(sch);
	if (to_free)
		__qdisc_drop(skb, to_free);
	else
		kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
}

noinline int fairgate_refuse(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	q->refused[0]++;
	q->refused[1] += qdisc_pkt_len(skb);
	drop(sch, skb, to_free);
	return NET_XMIT_DROP;
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

noinline bool fairgate_take_dropped(struct Qdisc *sch, struct sk_buff *arriving,
				    struct sk_buff **to_free)
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
		fairgate_rescue(sch, NULL);
	tell_parents(sch, q);
	return own;
}

/* The qdisc is emptied. */
void fairgate_reset(struct Qdisc *sch)
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
			fairgate_rescue(sch, NULL);
		local_bh_enable();
	}
	__skb_queue_purge(&q->plain);
	q->owed_packets = 0;
	q->owed_bytes = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}
