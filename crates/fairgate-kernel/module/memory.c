// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Memory of Rust. Each block is in the list of its queue, which goes without destructors after a panic.
 */
#include <linux/module.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include "qdisc.h"

/* Stands in front of each block, so that the memory of a queue can be released without its destructors. */
struct block {
	struct list_head list;
	u32 offset;			/* of the block's bytes in the allocation */
	u32 unused;
	u64 size;
};

DEFINE_SPINLOCK(fairgate_blocks_lock);
static atomic_long_t allocated = ATOMIC_LONG_INIT(0);

void *fgk_alloc(size_t size, size_t align, bool zero)
{
	size_t room = max(sizeof(struct block), align), total = room + size;
	struct guarded *call = fairgate_running_call();
	gfp_t gfp = __GFP_NOWARN | (zero ? __GFP_ZERO : 0);
	struct block *block;
	void *raw = NULL;

	/* Only powers of two are aligned to their size. Larger ones are aligned to pages. */
	if (align > 8 && total <= PAGE_SIZE)
		total = roundup_pow_of_two(total);
	if (total >= size && total <= INT_MAX && align <= PAGE_SIZE && !fairgate_allocation_is_to_fail())
		raw = is_atomic_call() ? kmalloc(total, gfp | GFP_ATOMIC) :
					 kvmalloc(total, gfp | GFP_KERNEL_ACCOUNT);
	if (!raw || !call) {
		if (call)
			call->no_memory = true;
		kvfree(raw);
		return NULL;
	}
	block = raw + room - sizeof(*block);
	block->offset = room;
	block->size = total;
	atomic_long_add(total, &allocated);
	spin_lock_bh(&fairgate_blocks_lock);
	list_add(&block->list, call->owner);
	spin_unlock_bh(&fairgate_blocks_lock);
	return raw + room;
}

static void release(struct block *block)
{
	atomic_long_sub(block->size, &allocated);
	kvfree((void *)(block + 1) - block->offset);
}

void fgk_free(void *at)
{
	struct block *block = at - sizeof(*block);

	spin_lock_bh(&fairgate_blocks_lock);
	list_del(&block->list);
	spin_unlock_bh(&fairgate_blocks_lock);
	release(block);
}

void fairgate_release_blocks(struct list_head *blocks)
{
	struct block *block, *next;

	list_for_each_entry_safe(block, next, blocks, list)
		release(block);
	INIT_LIST_HEAD(blocks);
}

long fairgate_allocated(void)
{
	return atomic_long_read(&allocated);
}

static int get_allocated(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%ld\n", fairgate_allocated());
}

static const struct kernel_param_ops allocated_ops = { .get = get_allocated };

module_param_cb(allocated, &allocated_ops, NULL, 0444);
MODULE_PARM_DESC(allocated, "bytes that trees and pools occupy");
