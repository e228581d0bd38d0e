// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Everything in a tree, for the program: generic netlink, in parts that src/nodes.rs writes.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/sock.h>
#include "qdisc.h"

/* The longest message of a reading: a part has at most 14,336 bytes. */
#define MOST_READ SZ_16K

struct reading {
	u32 index, handle;		/* of the interface, of the qdisc */
	struct guarded call;
	struct list_head blocks;
	struct fgk_reading *reading;	/* NULL before the first part */
	struct fgk_part part;
	struct fairgate_stats stats;
	u64 version;			/* of the tree that is read */
	bool begun;
};

/* Under rtnl, as all that uses the list. */
static struct Qdisc *find_queue(const struct net *net, u32 index, u32 handle)
{
	struct fairgate_sched *q;

	list_for_each_entry(q, &fairgate_queues, list) {
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
	long begun;

	if (!r->begun) {
		fairgate_read_stats(sch, &r->stats);
		r->version = q->version;
		if (!q->panicked) {
			begun = fairgate_call_sleeping(&r->call, NO_ENTRY, fgk_read, (long)q->queue, 0, 0, 0, 0);
			r->reading = (void *)begun;
		}
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
	const struct nlattr *device = nlmsg_find_attr(cb->nlh, GENL_HDRLEN, FAIRGATE_A_DEVICE);
	const struct nlattr *handle = nlmsg_find_attr(cb->nlh, GENL_HDRLEN, FAIRGATE_A_HANDLE);
	struct reading *r;

	if (!device || !handle)
		return -EINVAL;
	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return -ENOMEM;
	r->index = nla_get_u32(device);
	r->handle = nla_get_u32(handle);
	INIT_LIST_HEAD(&r->blocks);
	r->call.owner = &r->blocks;
	cb->args[0] = (long)r;
	cb->min_dump_alloc = MOST_READ;
	return 0;
}

static int reading_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct reading *r = (void *)cb->args[0];
	struct Qdisc *sch;
	void *message;
	int error;

	rtnl_lock();
	sch = find_queue(sock_net(cb->skb->sk), r->index, r->handle);
	error = sch ? read_next(sch, r) : -ENOENT;
	rtnl_unlock();
	if (error || (r->begun && !r->part.length))
		return error;
	message = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &fairgate_genl,
			      NLM_F_MULTI, FAIRGATE_CMD_READ);
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
		fairgate_release_blocks(&r->blocks);
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

struct genl_family fairgate_genl __ro_after_init = {
	.name = FAIRGATE_GENL_NAME,
	.version = FAIRGATE_GENL_VERSION,
	.maxattr = FAIRGATE_A_MAX,
	.policy = genl_policy,
	.netnsok = true,
	.module = THIS_MODULE,
	.ops = genl_ops,
	.n_ops = ARRAY_SIZE(genl_ops),
};
