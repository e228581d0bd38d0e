// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What tests ask for by parameters of the module: a panic of an entry, an allocation that fails, and how deep
 * the stack of each entry becomes. Calls of Rust cost nothing more until one of them was asked for.
 */
#include <linux/module.h>
#include <linux/sched/task_stack.h>
#include <linux/sysfs.h>
#include "qdisc.h"

static const char * const entry_names[] = {
	"build", "enqueue", "enqueued", "dequeue", "flush", "statistics", "dump", "change", "delete", "tree", "",
	"others",
};

DEFINE_STATIC_KEY_FALSE(fairgate_is_tested);
static int panic_in __read_mostly = NOWHERE;
static int failing_allocation;
static bool measures_stack __read_mostly;
static unsigned int deepest[ARRAY_SIZE(entry_names)];

static bool is_to_panic(enum entry entry)
{
	return READ_ONCE(panic_in) == entry && cmpxchg(&panic_in, entry, NOWHERE) == entry;
}

bool fairgate_allocation_is_to_fail(void)
{
	return static_branch_unlikely(&fairgate_is_tested) && READ_ONCE(failing_allocation) &&
	       !--failing_allocation;
}

/* ---- The stack: what a call leaves unchanged of a pattern was not used ---- */

#define PATTERN 0x5fa17a7e5fa17a7eUL
/* Words that are left at the end of the stack, and below the stack pointer for this function itself. */
#define MARGIN 32

/*
 * Fills what is free of a task's stack. Returns where that begins, or NULL on another stack. An interrupt takes
 * a few hundred bytes of it, which are then counted, too.
 */
static noinline unsigned long *fill_stack(void)
{
	unsigned long *end = (unsigned long *)task_stack_page(current) + MARGIN, *word;
	unsigned long *top = (unsigned long *)current_stack_pointer - MARGIN;

	if (!object_is_on_stack(&word) || top <= end)
		return NULL;
	for (word = end; word < top; word++)
		WRITE_ONCE(*word, PATTERN);
	return top;
}

static noinline void note_depth(enum entry entry, const unsigned long *top)
{
	const unsigned long *word = (unsigned long *)task_stack_page(current) + MARGIN;
	unsigned int depth;

	while (word < top && READ_ONCE(*word) == PATTERN)
		word++;
	depth = (top - word + MARGIN) * sizeof(*word);
	if (depth > deepest[entry])
		deepest[entry] = depth;
}

long fairgate_call_tested(struct guarded *call, enum entry entry, void *f, long a, long b, long c, long d,
			  long e)
{
	unsigned long *top = NULL;
	long result;

	if (is_to_panic(entry))
		f = fgk_provoke;
	if (READ_ONCE(measures_stack))
		top = fill_stack();
	result = fairgate_call_any(call, f, a, b, c, d, e);
	if (top)
		note_depth(entry, top);
	return result;
}

/* ---- Parameters of the module ---- */

static int set_panic_in(const char *value, const struct kernel_param *param)
{
	int entry = sysfs_match_string(entry_names, value);

	if (entry < 0 || entry > NOWHERE)
		return -EINVAL;
	if (entry != NOWHERE)
		static_branch_enable(&fairgate_is_tested);
	WRITE_ONCE(panic_in, entry);
	return 0;
}

static int get_panic_in(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", entry_names[READ_ONCE(panic_in)]);
}

static int set_failing(const char *value, const struct kernel_param *param)
{
	int error = kstrtoint(value, 0, &failing_allocation);

	if (!error && failing_allocation)
		static_branch_enable(&fairgate_is_tested);
	return error;
}

static int get_failing(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", READ_ONCE(failing_allocation));
}

static int set_stack(const char *value, const struct kernel_param *param)
{
	bool measures;
	int error = kstrtobool(value, &measures);

	if (error)
		return error;
	memset(deepest, 0, sizeof(deepest));
	if (measures)
		static_branch_enable(&fairgate_is_tested);
	WRITE_ONCE(measures_stack, measures);
	return 0;
}

static int get_stack(char *buffer, const struct kernel_param *param)
{
	int entry, length = 0;

	for (entry = 0; entry < ARRAY_SIZE(deepest); entry++)
		if (entry != NOWHERE)
			length += sysfs_emit_at(buffer, length, "%s %u\n", entry_names[entry], deepest[entry]);
	return length;
}

static const struct kernel_param_ops panic_in_ops = { .set = set_panic_in, .get = get_panic_in };
static const struct kernel_param_ops failing_ops = { .set = set_failing, .get = get_failing };
static const struct kernel_param_ops stack_ops = { .set = set_stack, .get = get_stack };

module_param_cb(panic_in, &panic_in_ops, NULL, 0600);
MODULE_PARM_DESC(panic_in, "a test: the next call of this entry panics");
module_param_cb(failing_allocation, &failing_ops, NULL, 0600);
MODULE_PARM_DESC(failing_allocation, "a test: so many allocations from now, one fails");
module_param_cb(stack, &stack_ops, NULL, 0600);
MODULE_PARM_DESC(stack, "a test: 1 measures the stack of calls; reading it shows the deepest, bytes");
