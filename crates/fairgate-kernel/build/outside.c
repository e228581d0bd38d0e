// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Runs the Rust object as a program, for tests: it reads operations from standard input and prints what became
 * of each packet. src/departures.rs writes the operations. The object's calls of the kernel are these.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;
#define __noreturn __attribute__((noreturn))
#include "fairgate.h"

/* What the kernel has for indirect calls and returns. */
asm(".globl __x86_return_thunk\n__x86_return_thunk: ret\n"
    ".globl __x86_indirect_thunk_r11\n__x86_indirect_thunk_r11: jmp *%r11\n"
    ".section .note.GNU-stack,\"\",@progbits\n.text\n");

void *fgk_alloc(size_t size, size_t align, bool zero)
{
	void *at;

	if (posix_memalign(&at, align < sizeof(void *) ? sizeof(void *) : align, size))
		return NULL;
	return zero ? memset(at, 0, size) : at;
}

void fgk_free(void *at)
{
	free(at);
}

u64 fgk_copy(u64 skb)
{
	return skb | 1ULL << 63;
}

void __noreturn fgk_panic(const char *text, size_t length)
{
	printf("panic: %.*s\n", (int)length, text);
	exit(1);
}

static void take(void *into, size_t size)
{
	if (fread(into, 1, size, stdin) != size) {
		fprintf(stderr, "the operations end within one\n");
		exit(2);
	}
}

static u64 number(void)
{
	u64 read;

	take(&read, sizeof(read));
	return read;
}

int main(void)
{
	struct fgk_queue *queue = NULL;
	struct fgk_leaving out = {};
	int operation;

	while ((operation = getchar()) != EOF) {
		static u8 bytes[1 << 16];
		struct fgk_refusal refusal = {};
		struct fgk_packet packet = {};
		static struct fgk_prepared *prepared;
		long result = 0;
		u64 seed, key[2], now;
		size_t length;

		switch (operation) {
		case 'N':
			if (queue)
				fgk_stop(queue, prepared);
			seed = number();
			take(key, sizeof(key));
			length = number();
			take(bytes, length);
			prepared = fgk_prepare(NULL, bytes, length, seed, &refusal);
			if (!prepared) {
				printf("refused: %s\n", refusal.text);
				return 1;
			}
			queue = fgk_start(prepared, key);
			printf("new\n");
			break;
		case 'E':
			now = number();
			packet.skb = number();
			packet.length = number();
			packet.memory = number();
			packet.priority = number();
			packet.ethertype = number();
			packet.outer_ethertype = packet.ethertype;
			packet.head_length = number();
			take(bytes, packet.head_length);
			packet.head = bytes;
			result = fgk_enqueue(queue, &packet, now);
			printf("in %ld\n", result & 1);
			break;
		case 'D':
			result = fgk_dequeue(queue, &out, number());
			if (!(result & FGK_CHANGED))
				out.marked = out.remarked = out.corrupted = out.traffic_class = 0;
			if ((result & 3) == 1)
				printf("out %llu %d %d %d\n", (unsigned long long)out.skb, out.marked,
				       out.remarked ? out.traffic_class : -1, out.corrupted);
			else
				printf("%s %llu\n", result & 3 ? "wait" : "idle",
				       (unsigned long long)(result & 3 ? out.until : 0));
			break;
		default:
			return 2;
		}
		while (result & FGK_DROPS && fgk_take_dropped(queue, &out, 0) == 1)
			printf("dropped %llu %d\n", (unsigned long long)out.skb, out.reason);
	}
	return 0;
}
