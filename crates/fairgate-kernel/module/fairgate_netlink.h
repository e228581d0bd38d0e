/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/* What the program and the module say to each other by netlink; src/client has the other side. */
#ifndef FAIRGATE_NETLINK_H
#define FAIRGATE_NETLINK_H

/*
 * In TCA_OPTIONS. Without a plan the tree is fq_codel. If a plan is refused because of a discipline in it, the
 * offset in the acknowledgement (NLMSGERR_ATTR_OFFS) is that of the plan's first byte plus the number of the
 * discipline: the root is 0, and each one comes before those inside it.
 */
enum {
	TCA_FAIRGATE_UNSPEC,
	TCA_FAIRGATE_PLAN,	/* bytes: the compact form of a plan */
	TCA_FAIRGATE_TEXT,	/* string: the tree as the user wrote it, only to be shown */
	__TCA_FAIRGATE_MAX
};
#define TCA_FAIRGATE_MAX (__TCA_FAIRGATE_MAX - 1)

#define FAIRGATE_STATS_VERSION 2

/*
 * Generic netlink, family `fairgate`: FAIRGATE_CMD_READ with DEVICE and HANDLE, as a dump, reads a qdisc with
 * everything in it. The first message has STATS. Each has a part of what src/nodes.rs writes, until one fails
 * or the dump ends: with EAGAIN if the tree has changed meanwhile. It needs CAP_NET_ADMIN.
 */
#define FAIRGATE_GENL_NAME "fairgate"
#define FAIRGATE_GENL_VERSION 2
enum { FAIRGATE_CMD_UNSPEC, FAIRGATE_CMD_READ };
enum {
	FAIRGATE_A_UNSPEC,
	FAIRGATE_A_DEVICE,	/* u32: the index of the interface */
	FAIRGATE_A_HANDLE,	/* u32 */
	FAIRGATE_A_STATS,	/* struct fairgate_stats */
	FAIRGATE_A_PART,	/* bytes */
	__FAIRGATE_A_MAX
};
#define FAIRGATE_A_MAX (__FAIRGATE_A_MAX - 1)

/* TCA_STATS_APP */
struct fairgate_stats {
	__u32 version;
	__u32 panicked;		/* a plain fifo since */
	struct fgk_counts counts;
	__u64 refused[2];	/* packets, and their bytes, for which there was no room */
	__u64 cut;		/* merged packets that were cut */
	__u64 passed;		/* packets that left the plain fifo */
	__u64 change_ns;	/* how long the last change held the lock of the queue */
	__u64 change_dropped;	/* packets for which it had no room */
};
#endif
