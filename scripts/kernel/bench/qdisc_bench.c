// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Measures the root discipline of a device: `backlog` packets of `flows` flows wait in it, and each of
 * `pairs` rounds takes one out and puts it in again. Loading the module is the measurement. In a guest whose
 * clock counts instructions (scripts/kernel/boot) the time is their number. Packets have the kernel's hash of
 * their flow, as those of a socket have, unless they are `forwarded`.
 */
#include <linux/ip.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#define REPETITIONS 3

static char *device = "d0";
module_param(device, charp, 0);
static char *name = "";
module_param(name, charp, 0);
static unsigned int flows = 64, backlog = 256, pairs = 10000;
module_param(flows, uint, 0);
module_param(backlog, uint, 0);
module_param(pairs, uint, 0);
static bool forwarded;
module_param(forwarded, bool, 0);

/* A datagram of 1,500 bytes, of which only the headers are there. */
static struct sk_buff *packet(struct net_device *dev, unsigned int flow)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct iphdr *ip;
	__be16 *ports;

	if (!skb)
		return NULL;
	skb_reserve(skb, 64);
	skb_put_zero(skb, 114);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*ip));
	ip = ip_hdr(skb);
	ip->version = 4;
	ip->ihl = 5;
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->tot_len = htons(100);
	ip->saddr = htonl(0x0a000001);
	ip->daddr = htonl(0x0a000100 + flow);
	ports = (__be16 *)(ip + 1);
	ports[0] = htons(1024 + flow);
	ports[1] = htons(9);
	ports[2] = htons(80);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	__skb_set_sw_hash(skb, (flow + 1) * 2654435761u, true);
	qdisc_skb_cb(skb)->pkt_len = 1514;
	return skb;
}

/* Returns how many rounds found no packet. */
static unsigned int rounds(struct Qdisc *q, unsigned int count, struct sk_buff **dropped)
{
	unsigned int empty = 0;

	while (count--) {
		struct sk_buff *skb = q->dequeue(q);

		if (!skb) {
			empty++;
			continue;
		}
		if (forwarded)
			skb_clear_hash(skb);
		q->enqueue(skb, q, dropped);
	}
	return empty;
}

static void measure(struct Qdisc *q, struct sk_buff **packets)
{
	struct sk_buff *dropped = NULL, *skb;
	unsigned int i, empty = 0, waiting;
	u64 began, took = U64_MAX;

	local_bh_disable();
	spin_lock(qdisc_lock(q));
	for (i = 0; i < backlog; i++)
		q->enqueue(packets[i], q, &dropped);
	/* Until every flow had its turns, and the tables are in use. */
	rounds(q, 2 * backlog + 500, &dropped);
	/* The shortest: interrupts and what they wake take time too. */
	for (i = 0; i < REPETITIONS; i++) {
		began = ktime_get_ns();
		empty += rounds(q, pairs, &dropped);
		took = min(took, ktime_get_ns() - began);
	}
	waiting = q->q.qlen;
	while ((skb = q->dequeue(q)))
		kfree_skb(skb);
	spin_unlock(qdisc_lock(q));
	local_bh_enable();
	kfree_skb_list(dropped);
	/* A discipline that drops or holds packets back was not measured. */
	if (empty || waiting != backlog)
		pr_alert("qdisc_bench: %s: %u rounds without a packet, %u of %u wait\n", name, empty, waiting,
			 backlog);
	else
		pr_alert("qdisc_bench: %s %llu\n", name, div_u64(took, pairs));
}

/* Two million instructions, for whoever checks the clock. */
static u64 calibrate(void)
{
	u64 began, took = U64_MAX;
	unsigned int i;

	for (i = 0; i < REPETITIONS; i++) {
		unsigned long n = 1000000, flags;

		local_irq_save(flags);
		began = ktime_get_ns();
		asm volatile("1: dec %0\n jnz 1b" : "+r"(n));
		took = min(took, ktime_get_ns() - began);
		local_irq_restore(flags);
	}
	return took;
}

static int __init qdisc_bench_init(void)
{
	struct net_device *dev = dev_get_by_name(&init_net, device);
	struct sk_buff **packets;
	struct Qdisc *q;
	unsigned int i;
	int result = -ENOMEM;

	if (!dev)
		return -ENODEV;
	packets = kvcalloc(backlog, sizeof(*packets), GFP_KERNEL);
	if (!packets)
		goto put;
	for (i = 0; i < backlog; i++) {
		packets[i] = packet(dev, i % flows);
		if (!packets[i]) {
			while (i--)
				kfree_skb(packets[i]);
			goto free;
		}
	}
	pr_alert("qdisc_bench: clock %llu\n", calibrate());
	rtnl_lock();
	q = rtnl_dereference(netdev_get_tx_queue(dev, 0)->qdisc_sleeping);
	/* `noqueue` has no such function. */
	result = q->enqueue ? 0 : -EINVAL;
	if (q->enqueue)
		measure(q, packets);
	rtnl_unlock();
free:
	kvfree(packets);
put:
	dev_put(dev);
	return result;
}
static void __exit qdisc_bench_exit(void)
{
}
module_init(qdisc_bench_init);
module_exit(qdisc_bench_exit);
MODULE_DESCRIPTION("Instructions of a dequeue and an enqueue of a discipline");
MODULE_LICENSE("Dual MIT/GPL");
