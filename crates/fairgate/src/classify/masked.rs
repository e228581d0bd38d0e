//! Numbers of which only some bits count.

use crate::error::ConfigError;

/// A number of which only the bits of a mask must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Masked<T> {
    value: T,
    mask: T,
}

macro_rules! masked {
    ($number:ty) => {
        impl Masked<$number> {
            /// Creates a condition on the bits that are set in `mask`.
            ///
            /// # Errors
            /// Fails if `value` has bits outside of `mask`, because these could never match.
            pub fn new(value: $number, mask: $number) -> Result<Masked<$number>, ConfigError> {
                if value & !mask != 0 {
                    return Err(ConfigError::conflict(
                        "mask",
                        format!("{mask:#x}"),
                        format!("a mask that holds all bits of the value, {value:#x}"),
                        "clear the bits of the value that are not to match, or set them in the mask",
                    ));
                }
                Ok(Masked { value, mask })
            }

            /// Creates a condition on all bits.
            pub const fn exactly(value: $number) -> Masked<$number> {
                Masked {
                    value,
                    mask: <$number>::MAX,
                }
            }

            /// Returns the bits that must match. All others are 0.
            pub const fn value(self) -> $number {
                self.value
            }

            /// Returns the mask of the bits that must match.
            pub const fn mask(self) -> $number {
                self.mask
            }

            /// Returns whether `number` matches.
            #[inline]
            pub const fn matches(self, number: $number) -> bool {
                number & self.mask == self.value
            }
        }
    };
}

masked!(u8);
masked!(u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_must_contain_the_bits_of_its_value() {
        assert!(Masked::<u8>::new(0x10, 0x1e).is_ok());
        let error = Masked::<u32>::new(0x11, 0x10).unwrap_err().to_string();
        assert!(
            error.starts_with("`mask` is 0x10, but must be a mask that holds all bits of the value, 0x11"),
            "{error}"
        );
    }
}
