//! Longest matching prefix: a trie with one byte per step.
//!
//! A branch ends where a single prefix is left, which is then compared as a whole. So below every node there
//! are at least two prefixes. A node has slots for only as many leading bits of its byte as its prefixes use.
//!
//! Every lookup takes as many steps as the deepest branch, because the end of a branch leads to itself. A
//! mispredicted jump costs more than the steps that it would save.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::BitAnd;

/// A prefix: its bits aligned to the left of 128, its length, and its case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) address: u128,
    pub(super) length: u8,
    pub(super) case: u32,
}

/// The target of a step.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The check with this number.
    End(u32),
    /// The node that begins here. It has a slot for each value of the leading bits of a byte.
    Node { first: u32, bits: u32 },
}

/// A step in one word: the first slot of the next node, and in the low bits the shift of the next byte that
/// selects one of the slots.
#[derive(Clone, Copy, Debug)]
struct Slot(u32);

const SHIFT_BITS: u32 = 5;

/// The last prefix of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Check<T> {
    value: T,
    mask: T,
    case: u32,
    otherwise: u32,
}

/// A trie over addresses of type `T`.
#[derive(Debug)]
pub(super) struct Trie<T> {
    root: Slot,
    /// The number of steps of the longest branch.
    depth: usize,
    /// One slot for each check, which leads to itself; then the slots of the nodes.
    slots: Vec<Slot>,
    checks: Vec<Check<T>>,
}

impl<T: Copy + Eq + BitAnd<Output = T>> Trie<T> {
    /// Builds the trie from distinct prefixes, sorted by address and length. `otherwise` is the case of
    /// addresses in no prefix. `value` converts the leading bits of 128 to an address.
    pub(super) fn new(leaves: &[Leaf], otherwise: u32, value: impl Fn(u128) -> T) -> Trie<T> {
        let (otherwise, leaves) = match leaves.split_first() {
            Some((first, rest)) if first.length == 0 => (first.case, rest),
            _ => (otherwise, leaves),
        };
        let mut builder = Builder::default();
        let root = builder.build(leaves, 0, otherwise);
        let ends = builder.checks.len() as u32;
        let slot = |step: Step| match step {
            Step::End(check) => Slot(check << SHIFT_BITS | 8),
            Step::Node { first, bits } => Slot((ends + first) << SHIFT_BITS | (8 - bits)),
        };
        let to_themselves = (0..ends).map(Step::End);
        let check = |check: &Check<u128>| Check {
            value: value(check.value),
            mask: value(check.mask),
            case: check.case,
            otherwise: check.otherwise,
        };
        Trie {
            root: slot(root),
            depth: builder.depth,
            slots: to_themselves.chain(builder.steps).map(slot).collect(),
            checks: builder.checks.iter().map(check).collect(),
        }
    }

    /// Returns the case of the longest prefix that contains the address, which is given as bytes and as a
    /// number.
    #[inline]
    pub(super) fn case(&self, bytes: &[u8], value: T) -> u32 {
        let mut slot = self.root.0;
        for byte in &bytes[..self.depth] {
            slot = self.slots[((slot >> SHIFT_BITS) + (u32::from(*byte) >> (slot & 31))) as usize].0;
        }
        let check = &self.checks[(slot >> SHIFT_BITS) as usize];
        if value & check.mask == check.value {
            check.case
        } else {
            check.otherwise
        }
    }
}

#[derive(Default)]
struct Builder {
    steps: Vec<Step>,
    checks: Vec<Check<u128>>,
    known: BTreeMap<Check<u128>, u32>,
    depth: usize,
}

impl Builder {
    /// Builds the step for addresses whose first `depth` bytes are known, among the longer prefixes.
    fn build(&mut self, leaves: &[Leaf], depth: usize, otherwise: u32) -> Step {
        match leaves {
            [] => self.end(Check {
                value: 0,
                mask: 0,
                case: otherwise,
                otherwise,
            }),
            [only] => self.end(Check {
                value: only.address,
                mask: u128::MAX << (128 - u32::from(only.length)),
                case: only.case,
                otherwise,
            }),
            _ => self.node(leaves, depth, otherwise),
        }
    }

    fn end(&mut self, check: Check<u128>) -> Step {
        let checks = &mut self.checks;
        Step::End(*self.known.entry(check).or_insert_with(|| {
            checks.push(check);
            checks.len() as u32 - 1
        }))
    }

    fn node(&mut self, leaves: &[Leaf], depth: usize, otherwise: u32) -> Step {
        self.depth = self.depth.max(depth + 1);
        let known = 8 * depth as u32;
        // The first bits of the byte, as many as distinguish the prefixes.
        let bits = leaves
            .iter()
            .map(|leaf| u32::from(leaf.length) - known)
            .max()
            .unwrap_or(0)
            .min(8);
        let place = |leaf: &Leaf| (leaf.address << known >> (128 - bits)) as usize;
        let ends_here = |leaf: &&Leaf| u32::from(leaf.length) <= known + bits;
        // A prefix that ends within this byte covers whole slots. Longer prefixes come later.
        let mut covered = vec![otherwise; 1 << bits];
        let mut ending: Vec<&Leaf> = leaves.iter().filter(ends_here).collect();
        ending.sort_unstable_by_key(|leaf| (leaf.length, leaf.address));
        for leaf in ending {
            let first = place(leaf);
            covered[first..first + (1 << (known + bits - u32::from(leaf.length)))].fill(leaf.case);
        }
        let first = self.steps.len();
        self.steps.resize(first + covered.len(), Step::End(0));
        let mut rest = leaves;
        for (at, otherwise) in covered.into_iter().enumerate() {
            let (here, behind) = rest.split_at(rest.partition_point(|leaf| place(leaf) == at));
            rest = behind;
            let longer = here.partition_point(|leaf| ends_here(&leaf));
            self.steps[first + at] = self.build(&here[longer..], depth + 1, otherwise);
        }
        Step::Node {
            first: first as u32,
            bits,
        }
    }
}
