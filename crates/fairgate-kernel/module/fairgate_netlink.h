/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/* What the program and the module say to each other by netlink; src/bin/fairgate-qdisc.rs has the other side. */
#ifndef FAIRGATE_NETLINK_H
#define FAIRGATE_NETLINK_H

/* In TCA_OPTIONS. Without a plan the tree is fq_codel. */
enum {
	TCA_FAIRGATE_UNSPEC,
	TCA_FAIRGATE_PLAN,	/* bytes: the compact form of a plan */
	TCA_FAIRGATE_TEXT,	/* string: the tree as the user wrote it, only to be shown */
	__TCA_FAIRGATE_MAX
};
#define TCA_FAIRGATE_MAX (__TCA_FAIRGATE_MAX - 1)

#define FAIRGATE_STATS_VERSION 1

/* TCA_STATS_APP */
struct fairgate_stats {
	__u32 version;
	__u32 panicked;		/* a plain fifo since */
	struct fgk_counts counts;
	__u64 refused[2];	/* packets, and their bytes, for which there was no room */
	__u64 cut;		/* merged packets that were cut */
	__u64 passed;		/* packets that left the plain fifo */
};
#endif
