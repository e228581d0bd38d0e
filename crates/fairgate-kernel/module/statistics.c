// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What `tc` shows: counters of a qdisc, and the classes of its tree.
 */
#include <net/gen_stats.h>
#include "qdisc.h"

/* Adds counts, which are all numbers of 64 bits. */
void fairgate_add_counts(struct fgk_counts *sum, const struct fgk_counts *counts)
{
	const u64 *from = (const u64 *)counts;
	u64 *to = (u64 *)sum;
	unsigned int i;

	for (i = 0; i < sizeof(*counts) / sizeof(u64); i++)
		to[i] += from[i];
}

/* Reads under the lock: the counts of the root, or the first class from the number in `class` on. */
static void read_counts(struct Qdisc *sch, enum entry entry, struct fgk_class *class, struct fgk_counts *counts)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	sch_tree_lock(sch);
	if (q->queue && !q->panicked) {
		if (class)
			CALL(&q->call, entry, fgk_class, q->queue, q->running, class);
		else
			CALL(&q->call, entry, fgk_statistics, q->queue, counts, 0);
		if (unlikely(q->call.panicked))
			fairgate_rescue(sch, NULL);
	}
	if (class && q->panicked)
		class->number = 0;
	sch_tree_unlock(sch);
}

/* Reads a class. Returns false if there is none of this number. */
static bool read_class(struct Qdisc *sch, u32 number, struct fgk_class *class)
{
	class->number = number;
	read_counts(sch, NO_ENTRY, class, NULL);
	return class->number == number;
}

void fairgate_read_stats(struct Qdisc *sch, struct fairgate_stats *stats)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	stats->version = FAIRGATE_STATS_VERSION;
	read_counts(sch, STATISTICS, NULL, &stats->counts);
	stats->panicked = q->panicked;
	fairgate_add_counts(&stats->counts, &q->before);
	stats->refused[0] = q->refused[0];
	stats->refused[1] = q->refused[1];
	stats->cut = q->cut;
	stats->passed = q->passed;
	stats->change_ns = q->change_ns;
	stats->change_dropped = q->change_dropped;
}

int fairgate_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct fairgate_sched *q = qdisc_priv(sch);
	struct nlattr *options = nla_nest_start_noflag(skb, TCA_OPTIONS);

	/* A long text is left out, so that the message has room for the statistics. */
	if (!options || (q->text && strlen(q->text) < 1024 && nla_put_string(skb, TCA_FAIRGATE_TEXT, q->text)))
		return -EMSGSIZE;
	return nla_nest_end(skb, options);
}

int fairgate_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct fairgate_stats stats = {};

	fairgate_read_stats(sch, &stats);
	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

static struct Qdisc *fairgate_leaf(struct Qdisc *sch, unsigned long class)
{
	return NULL;
}

static unsigned long fairgate_find(struct Qdisc *sch, u32 classid)
{
	struct fgk_class class = {};
	u32 minor = TC_H_MIN(classid);

	return minor && read_class(sch, minor, &class) ? minor : 0;
}

static void fairgate_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct fgk_class class = {};

	while (!arg->stop) {
		class.number++;
		read_counts(sch, DUMP, &class, NULL);
		if (!class.number)
			break;
		if (arg->count >= arg->skip && arg->fn(sch, class.number, arg) < 0)
			arg->stop = 1;
		else
			arg->count++;
	}
}

static int fairgate_dump_class(struct Qdisc *sch, unsigned long minor, struct sk_buff *skb, struct tcmsg *tcm)
{
	struct fgk_class class = {};

	tcm->tcm_handle |= TC_H_MIN(minor);
	if (read_class(sch, minor, &class) && class.parent)
		tcm->tcm_parent = TC_H_MAKE(sch->handle, class.parent);
	return 0;
}

/* Bytes and packets that were sent. */
static int copy_basic(struct gnet_dump *d, u64 bytes, u64 packets)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 16, 0)
	struct gnet_stats_basic_packed basic = { .bytes = bytes, .packets = packets };

	return gnet_stats_copy_basic(NULL, d, NULL, &basic);
#else
	struct gnet_stats_basic_sync basic;

	gnet_stats_basic_sync_init(&basic);
	u64_stats_set(&basic.bytes, bytes);
	u64_stats_set(&basic.packets, packets);
	return gnet_stats_copy_basic(d, NULL, &basic, false);
#endif
}

static int fairgate_dump_class_stats(struct Qdisc *sch, unsigned long minor, struct gnet_dump *d)
{
	struct gnet_stats_queue queue = {};
	struct fgk_class class = {};

	if (!read_class(sch, minor, &class))
		return 0;
	queue.backlog = class.counts.backlog[1];
	queue.drops = class.counts.dropped[0];
	queue.overlimits = class.counts.overlimits;
	if (copy_basic(d, class.counts.dequeued[1], class.counts.dequeued[0]) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &queue, class.counts.backlog[0]) < 0)
		return -1;
	return 0;
}

const struct Qdisc_class_ops fairgate_class_ops = {
	.leaf = fairgate_leaf,
	.find = fairgate_find,
	.walk = fairgate_walk,
	.dump = fairgate_dump_class,
	.dump_stats = fairgate_dump_class_stats,
};
