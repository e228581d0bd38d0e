//! The integer cube root, for the time at which CUBIC's curve reaches its plateau.

/// Returns the largest number whose cube is at most `value`. It works bit by bit and without floats, so the
/// result is the same on every machine.
pub(super) fn cubic_root(value: u64) -> u64 {
    let mut root: u64 = 0;
    for bit in (0..22).rev() {
        let candidate = root | 1 << bit;
        // 2^22 cubed is 2^66, so compare in 128 bits.
        if u128::from(candidate).pow(3) <= u128::from(value) {
            root = candidate;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_result_is_the_floor_of_the_cube_root(value in any::<u64>()) {
            let root = u128::from(cubic_root(value));
            prop_assert!(root.pow(3) <= u128::from(value));
            prop_assert!((root + 1).pow(3) > u128::from(value));
        }
    }
}
