// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Trees: what arrives by netlink is checked and built, and takes the place of the tree that runs.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include "qdisc.h"

/* The longest text of a tree that is kept to be shown. */
#define MOST_TEXT 4096

static const struct nla_policy policy[TCA_FAIRGATE_MAX + 1] = {
	[TCA_FAIRGATE_PLAN] = { .type = NLA_BINARY },
	[TCA_FAIRGATE_TEXT] = { .type = NLA_NUL_STRING, .len = MOST_TEXT - 1 },
};

u64 fairgate_next_version(void)
{
	static atomic64_t versions = ATOMIC64_INIT(0);

	return atomic64_inc_return(&versions);
}

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

/* Changes the running tree. Returns -EINVAL if nothing has changed. */
static noinline int take_over(struct Qdisc *sch, struct fgk_prepared *prepared)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	u64 begun, dropped;
	long changed;
	int error = 0;

	sch_tree_lock(sch);
	/* A packet may have made it panic since the change was planned. */
	if (unlikely(q->panicked)) {
		sch_tree_unlock(sch);
		return -EIO;
	}
	begun = ktime_get_ns();
	dropped = sch->qstats.drops;
	changed = CALL(&q->call, CHANGE, fgk_succeed, q->queue, prepared, begun);
	if (unlikely(q->call.panicked)) {
		fairgate_rescue(sch, NULL);
		error = -EIO;
	} else if (unlikely(!changed)) {
		error = -EINVAL;
	} else {
		look_at_needs(q);
		fairgate_take_dropped(sch, NULL, NULL);
		/* What waits may be due at once. */
		qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns());
	}
	q->change_dropped = (u32)(sch->qstats.drops - dropped);
	q->change_ns = ktime_get_ns() - begun;
	sch_tree_unlock(sch);
	return error;
}

/* Lets a new queue begin, with the packets of the plain fifo. */
static void begin(struct Qdisc *sch, struct fgk_queue *queue, struct fgk_prepared *running,
		  struct list_head *blocks)
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
	q->running = running;
	look_at_needs(q);
	q->panicked = false;
	q->call.panicked = false;
	q->call.no_memory = false;
	skb_queue_splice_init(&q->plain, &waiting);
	while ((skb = __skb_dequeue(&waiting))) {
		unsigned int length = qdisc_pkt_len(skb);

		sch->q.qlen--;
		sch->qstats.backlog -= length;
		if (fairgate_enqueue_one(skb, sch, &to_free, ktime_get_ns()) != NET_XMIT_SUCCESS)
			qdisc_tree_reduce_backlog(sch, 1, length);
	}
	sch_tree_unlock(sch);
	kfree_skb_list(to_free);
	fairgate_release_blocks(&old);
}

int fairgate_configure(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_FAIRGATE_MAX + 1] = {};
	const struct nlattr *plan, *shown;
	struct guarded *call;
	struct fgk_prepared *running, *prepared;
	struct fgk_queue *queue = NULL;
	struct fgk_refusal refusal = { .node = FGK_NO_NODE };
	char *text;
	u64 key[2] = { get_random_u64(), get_random_u64() };
	LIST_HEAD(blocks);
	int error = 0;

	if (opt) {
		error = nla_parse_nested_deprecated(tb, TCA_FAIRGATE_MAX, opt, policy, extack);
		if (error < 0)
			return error;
		error = 0;
	}
	plan = tb[TCA_FAIRGATE_PLAN];
	shown = tb[TCA_FAIRGATE_TEXT];
	call = kzalloc(sizeof(*call), GFP_KERNEL);
	text = shown ? nla_strdup(shown, GFP_KERNEL) : kstrdup(plan ? "" : "fq_codel", GFP_KERNEL);
	if (!call || !text) {
		kfree(call);
		kfree(text);
		return -ENOMEM;
	}
	call->owner = &blocks;
	running = q->queue && !q->panicked ? q->running : NULL;
	prepared = (void *)fairgate_call_sleeping(call, BUILD, fgk_prepare, (long)running,
						  (long)(plan ? nla_data(plan) : NULL),
						  plan ? nla_len(plan) : 0, key[0] ^ key[1], (long)&refusal);
	if (call->panicked)
		goto panicked;
	if (!prepared)
		goto refused;

	if (running) {
		error = take_over(sch, prepared);
		/* From now on both trees hold memory of both: that of the queue goes with the queue. */
		spin_lock_bh(&fairgate_blocks_lock);
		list_splice_init(&blocks, &q->blocks);
		spin_unlock_bh(&fairgate_blocks_lock);
		if (error == -EINVAL) {
			fairgate_call_sleeping(call, NO_ENTRY, fgk_settle, (long)running, (long)prepared, 0, 0, 0);
			tell(extack, "a discipline refuses new settings that it accepted before");
			goto failed;
		}
		if (error) {
			why_not(&q->call, extack);
			goto failed;
		}
		q->running = prepared;
		fairgate_call_sleeping(call, NO_ENTRY, fgk_settle, (long)prepared, (long)running, 0, 0, 0);
	} else {
		queue = (void *)fairgate_call_sleeping(call, NO_ENTRY, fgk_start, (long)prepared, (long)key, 0, 0,
						       0);
		if (call->panicked)
			goto panicked;
		sch->limit = fgk_slots(queue);
		begin(sch, queue, prepared, &blocks);
	}
	swap(q->text, text);
	q->version = fairgate_next_version();
	goto out;

refused:
	tell(extack, refusal.text);
	/* Of netlink's messages only the offset is a number: fairgate_netlink.h. */
	if (extack && plan && refusal.node < nla_len(plan))
		extack->bad_attr = nla_data(plan) + refusal.node;
	error = -EINVAL;
	goto failed;
panicked:
	error = why_not(call, extack);
failed:
	/* Nothing has changed. The memory goes without destructors. */
	fairgate_release_blocks(&blocks);
out:
	kfree(text);
	kfree(call);
	return error;
}
