//! Finds the number of a kernel function in BTF, the kernel's description of its own types (Linux
//! Documentation/bpf/btf.rst). A program calls a kernel function by this number, which differs from kernel to
//! kernel.

use std::fs;

/// Where the kernel shows its BTF.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
/// The bytes of every type, before what depends on its kind.
const TYPE: usize = 12;
const FUNCTION: u32 = 12;

/// Returns the number of a function in the running kernel, if it has the function and BTF.
pub(super) fn kernel_function(name: &str) -> Option<i32> {
    function(&fs::read(KERNEL).ok()?, name)
}

/// Returns the number of a function in BTF in this machine's byte order.
fn function(btf: &[u8], name: &str) -> Option<i32> {
    let magic: [u8; 2] = btf.get(..2)?.try_into().ok()?;
    if u16::from_ne_bytes(magic) != MAGIC {
        return None;
    }
    let [header, types, types_length, strings] = [4, 8, 12, 16].map(|at| word(btf, at));
    let body = btf.get(header? as usize..)?;
    let strings = body.get(strings? as usize..)?;
    let types = body.get(types? as usize..)?.get(..types_length? as usize)?;
    let mut at = 0;
    // Number 0 is `void`, which is not listed.
    for number in 1.. {
        if at >= types.len() {
            return None;
        }
        let info = word(types, at + 4)?;
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        if kind == FUNCTION && is_named(strings, word(types, at)? as usize, name) {
            return Some(number);
        }
        at += TYPE + tail(kind, count)?;
    }
    None
}

/// Returns the bytes that follow a type of this kind with `count` members. `None` if the kind is unknown.
fn tail(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, forward declarations, type definitions, qualifiers, functions, floats, type tags.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, declaration tags.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, 64-bit enumerations.
        4 | 5 | 15 | 19 => 12 * count,
        // Enumerations, prototypes of functions.
        6 | 13 => 8 * count,
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn is_named(strings: &[u8], at: usize, name: &str) -> bool {
    let rest = strings
        .get(at..)
        .and_then(|text| text.strip_prefix(name.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// BTF with types of every kind, and the functions `first` and `first_and_more` behind them.
    fn sample() -> Vec<u8> {
        let strings = b"\0first_and_more\0first\0";
        let mut types: Vec<u8> = Vec::new();
        let mut add = |name: u32, kind: u32, count: u32, tail: usize| {
            for word in [name, kind << 24 | count, 0] {
                types.extend(word.to_ne_bytes());
            }
            types.extend(vec![0xff; tail]);
        };
        for (kind, count, tail) in [
            (1, 0, 4),
            (2, 0, 0),
            (3, 0, 12),
            (4, 3, 36),
            (6, 2, 16),
            (13, 4, 32),
            (14, 0, 4),
            (15, 1, 12),
            (17, 0, 4),
            (19, 2, 24),
        ] {
            add(0, kind, count, tail);
        }
        add(1, FUNCTION, 1, 0);
        add(16, FUNCTION, 1, 0);
        let mut btf = MAGIC.to_ne_bytes().to_vec();
        btf.extend([1, 0]);
        let words = [
            24,
            0,
            types.len() as u32,
            types.len() as u32,
            strings.len() as u32,
        ];
        for word in words {
            btf.extend(u32::to_ne_bytes(word));
        }
        btf.extend(types);
        btf.extend(strings);
        btf
    }

    #[test]
    fn functions_are_found_by_their_whole_names() {
        let btf = sample();
        assert_eq!(function(&btf, "first_and_more"), Some(11));
        assert_eq!(function(&btf, "first"), Some(12));
        assert_eq!(function(&btf, "firs"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn damaged_btf_is_read(
            at in any::<prop::sample::Index>(),
            byte: u8,
            length in any::<prop::sample::Index>(),
        ) {
            let mut btf = sample();
            let at = at.index(btf.len());
            btf[at] = byte;
            btf.truncate(length.index(btf.len() + 1));
            let _ = function(&btf, "first");
        }
    }
}
