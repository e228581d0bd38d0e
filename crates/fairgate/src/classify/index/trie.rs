//! Longest matching prefix of an address: a trie of four bits a step, whose nodes are cache lines. Where a single prefix is
//! left a step compares all of it, so that the depth grows with the logarithm of the number of prefixes and not with
//! their length.

/// A prefix: its bits aligned to the left, how many, and the row that it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) address: u128,
    pub(super) length: u8,
    pub(super) row: u32,
}

/// Where a step leads: a row, a node or a check. The two high bits tell which.
#[derive(Clone, Copy, Debug)]
struct Step(u32);

const KIND: u32 = 3 << 30;
const NODE: u32 = 1 << 30;
const CHECK: u32 = 2 << 30;

#[derive(Debug)]
#[repr(align(64))]
struct Node([Step; 16]);

/// The last prefix of a branch.
#[derive(Debug)]
struct Check {
    address: u128,
    mask: u128,
    row: u32,
    otherwise: u32,
}

#[derive(Debug)]
pub(super) struct Trie {
    root: Step,
    nodes: Vec<Node>,
    checks: Vec<Check>,
}

fn mask(length: u8) -> u128 {
    match length {
        0 => 0,
        length => u128::MAX << (128 - u32::from(length)),
    }
}

impl Trie {
    /// Over distinct prefixes by rising address and length; `otherwise` is the row of addresses that none of them holds.
    /// Rows are below 2^30.
    pub(super) fn new(leaves: &[Leaf], otherwise: u32) -> Trie {
        let mut trie = Trie {
            root: Step(otherwise),
            nodes: Vec::new(),
            checks: Vec::new(),
        };
        let (otherwise, leaves) = match leaves.split_first() {
            Some((first, rest)) if first.length == 0 => (first.row, rest),
            _ => (otherwise, leaves),
        };
        trie.root = trie.build(leaves, 0, otherwise);
        trie
    }

    /// The step for addresses whose first `depth` bits are known, among the prefixes that are longer.
    fn build(&mut self, leaves: &[Leaf], depth: u8, otherwise: u32) -> Step {
        match leaves {
            [] => Step(otherwise),
            [only] => {
                self.checks.push(Check {
                    address: only.address,
                    mask: mask(only.length),
                    row: only.row,
                    otherwise,
                });
                Step(CHECK | (self.checks.len() - 1) as u32)
            }
            _ => {
                let mut steps = [Step(otherwise); 16];
                let shift = 124 - u32::from(depth);
                // Prefixes that end within these four bits cover whole steps; the longer ones come later.
                let mut covered = [otherwise; 16];
                let mut ending: Vec<&Leaf> = leaves.iter().filter(|leaf| leaf.length <= depth + 4).collect();
                ending.sort_by_key(|leaf| leaf.length);
                for leaf in ending {
                    let first = (leaf.address >> shift) as usize & 15;
                    covered[first..first + (1 << (depth + 4 - leaf.length))].fill(leaf.row);
                }
                let mut rest = leaves;
                for (nibble, step) in steps.iter_mut().enumerate() {
                    let is_here = |leaf: &Leaf| (leaf.address >> shift) as usize & 15 == nibble;
                    let (here, behind) = rest.split_at(rest.partition_point(is_here));
                    rest = behind;
                    let longer = here.partition_point(|leaf| leaf.length <= depth + 4);
                    *step = self.build(&here[longer..], depth + 4, covered[nibble]);
                }
                self.nodes.push(Node(steps));
                Step(NODE | (self.nodes.len() - 1) as u32)
            }
        }
    }

    /// The row of the longest prefix that holds `address`.
    #[inline(always)]
    pub(super) fn row(&self, address: u128) -> u32 {
        let mut step = self.root.0;
        let (mut high, mut low) = ((address >> 64) as u64, address as u64);
        while step & KIND == NODE {
            let node = &self.nodes[(step & !KIND) as usize];
            step = node.0[(high >> 60) as usize].0;
            high = high << 4 | low >> 60;
            low <<= 4;
        }
        if step & KIND != CHECK {
            return step;
        }
        let check = &self.checks[(step & !KIND) as usize];
        if address & check.mask == check.address {
            check.row
        } else {
            check.otherwise
        }
    }
}
