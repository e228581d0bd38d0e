// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The C part of sch_fairgate: a qdisc over the queue of the Rust object (fairgate.h).
 *
 *   packet.c      the path of a packet: in, out, dropped
 *   segments.c    merged packets, cut before they are enqueued
 *   rescue.c      after a panic: a plain fifo
 *   configure.c   trees: built from what arrives by netlink, and changed
 *   statistics.c  what `tc` shows
 *   nodes.c       everything in a tree, for the program
 *   panic.c       guarded calls of Rust, which may panic; guard.S leaves them
 *   tested.c      what tests ask for
 *   memory.c      memory of Rust
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include "qdisc.h"

LIST_HEAD(fairgate_queues);

static int fairgate_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	list_add(&q->list, &fairgate_queues);
	INIT_LIST_HEAD(&q->blocks);
	q->call.owner = &q->blocks;
	__skb_queue_head_init(&q->plain);
	qdisc_watchdog_init(&q->watchdog, sch);
	return fairgate_configure(sch, opt, extack);
}

static void fairgate_destroy(struct Qdisc *sch)
{
	struct fairgate_sched *q = qdisc_priv(sch);

	list_del(&q->list);
	qdisc_watchdog_cancel(&q->watchdog);
	if (q->queue && !q->panicked)
		fairgate_call_sleeping(&q->call, DELETE, fgk_stop, (long)q->queue, (long)q->running,
				       0, 0, 0);
	fairgate_release_blocks(&q->blocks);
	kfree(q->text);
}

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
	.change = fairgate_configure,
	.dump = fairgate_dump,
	.dump_stats = fairgate_dump_stats,
	.owner = THIS_MODULE,
};

static int __init fairgate_module_init(void)
{
	int error = genl_register_family(&fairgate_genl);

	if (error)
		return error;
	error = register_qdisc(&fairgate_ops);
	if (error)
		genl_unregister_family(&fairgate_genl);
	return error;
}

static void __exit fairgate_module_exit(void)
{
	unregister_qdisc(&fairgate_ops);
	genl_unregister_family(&fairgate_genl);
	WARN(fairgate_allocated(), "fairgate: %ld bytes are not released\n", fairgate_allocated());
}

module_init(fairgate_module_init);
module_exit(fairgate_module_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Fairgate's queueing disciplines");
MODULE_ALIAS("net-sch-fairgate");
