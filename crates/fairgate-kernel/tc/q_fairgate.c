// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A plugin for tc of iproute2, which finds it as q_fairgate.so in its folder of libraries (TC_LIB_DIR):
 *
 *   tc qdisc add dev eth0 root fairgate 'tbf rate=20mbit burst=20kb / sqf'
 *   tc qdisc change dev eth0 root fairgate @home.toml --queue uplink
 *
 * What follows `fairgate` is given to `fairgate-qdisc options`, which checks it and writes the attributes, so
 * that a tree is read in one place only. The types are those of tc_util.h, json_print.h and color.h, which no
 * package of headers has; tc has kept them since 2017 (4.13).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
#define __noreturn __attribute__((noreturn))
#include "../module/fairgate.h"
#include "../module/fairgate_netlink.h"

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *n,
			  const char *device);
	int (*print_qopt)(const struct qdisc_util *self, FILE *to, struct rtattr *options);
	int (*print_xstats)(const struct qdisc_util *self, FILE *to, struct rtattr *statistics);
	int (*parse_copt)(const struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *n,
			  const char *device);
	int (*print_copt)(const struct qdisc_util *self, FILE *to, struct rtattr *options);
	int (*has_block)(const struct qdisc_util *self, struct rtattr *options, __u32 block, bool *has);
};

/* Functions of tc. */
enum { PRINT_ANY = 4, COLOR_NONE = 6 };
int addattr_l(struct nlmsghdr *n, int most, int kind, const void *data, int length);
int print_color_string(int type, int color, const char *key, const char *format, const char *value);
int print_color_u64(int type, int color, const char *key, const char *format, uint64_t value);

/* The buffer that tc has for the whole message: TCA_BUF_MAX. */
#define MOST (64 * 1024)

/* Runs fairgate-qdisc, and reads what it prints. Returns the length, or -1: then it has said what is wrong. */
static int ask(int argc, char **argv, char *into, size_t most)
{
	char **words = calloc(argc + 4, sizeof(*words));
	size_t length = 0;
	ssize_t got = 1;
	int ends[2], state;
	pid_t child;

	if (!words || pipe(ends)) {
		perror("fairgate");
		return -1;
	}
	words[0] = "fairgate-qdisc";
	words[1] = "options";
	memcpy(words + 2, argv, argc * sizeof(*argv));
	/* Without words it is the tree of a qdisc to which nothing is sent. */
	if (!argc)
		words[2] = "fq_codel";
	child = fork();
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execvp(words[0], words);
		fprintf(stderr, "fairgate-qdisc can't be run: %s; install it in a folder of PATH\n",
			strerror(errno));
		_exit(127);
	}
	free(words);
	close(ends[1]);
	while (child > 0 && length < most && (got = read(ends[0], into + length, most - length)) != 0) {
		if (got < 0 && errno != EINTR)
			break;
		if (got > 0)
			length += got;
	}
	close(ends[0]);
	if (child < 0) {
		perror("fairgate");
		return -1;
	}
	while (waitpid(child, &state, 0) < 0 && errno == EINTR)
		;
	if (length == most) {
		fprintf(stderr, "the tree is too large for tc; use fairgate-qdisc\n");
		return -1;
	}
	return got >= 0 && WIFEXITED(state) && !WEXITSTATUS(state) ? (int)length : -1;
}

static int parse(const struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *n, const char *device)
{
	static char options[MOST];
	int length;

	(void)self;
	(void)device;
	if (argc > 0 && !strcmp(argv[0], "help")) {
		fprintf(stderr,
			"Usage: ... fairgate [TREE | @FILE [--queue NAME]] [--slots N]\n"
			"TREE is one word: 'tbf rate=20mbit burst=20kb / sqf'; `fairgate list` has all disciplines.\n");
		return -1;
	}
	length = ask(argc, argv, options, sizeof(options));
	return length < 0 ? -1 : addattr_l(n, MOST, TCA_OPTIONS, options, length);
}

/* Returns an attribute within these bytes, or NULL. */
static struct rtattr *find(struct rtattr *at, int left, int kind)
{
	for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
		if ((at->rta_type & NLA_TYPE_MASK) == kind)
			return at;
	return NULL;
}

static int print(const struct qdisc_util *self, FILE *to, struct rtattr *options)
{
	struct rtattr *text;

	(void)self;
	(void)to;
	text = options ? find(RTA_DATA(options), RTA_PAYLOAD(options), TCA_FAIRGATE_TEXT) : NULL;
	/* The kernel ends it with a zero. */
	if (text && RTA_PAYLOAD(text) && !((char *)RTA_DATA(text))[RTA_PAYLOAD(text) - 1])
		print_color_string(PRINT_ANY, COLOR_NONE, "tree", "tree '%s' ", RTA_DATA(text));
	return 0;
}

static void number(const char *key, const char *format, uint64_t value)
{
	print_color_u64(PRINT_ANY, COLOR_NONE, key, format, value);
}

static int print_counters(const struct qdisc_util *self, FILE *to, struct rtattr *statistics)
{
	struct fairgate_stats found;

	(void)self;
	(void)to;
	if (!statistics || RTA_PAYLOAD(statistics) < sizeof(found))
		return 0;
	memcpy(&found, RTA_DATA(statistics), sizeof(found));
	if (found.version != FAIRGATE_STATS_VERSION)
		return 0;
	number("marked", "  marked %" PRIu64, found.counts.marked);
	number("cut", " cut %" PRIu64, found.cut);
	number("refused", " refused %" PRIu64, found.refused[0]);
	number("change_ns", " change_ns %" PRIu64, found.change_ns);
	number("panicked", " panicked %" PRIu64, found.panicked);
	return 0;
}

struct qdisc_util fairgate_qdisc_util = {
	.id = "fairgate",
	.parse_qopt = parse,
	.print_qopt = print,
	.print_xstats = print_counters,
};
