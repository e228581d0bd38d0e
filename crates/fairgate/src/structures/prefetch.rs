//! Cache lines that are needed soon.

/// Prefetches the cache line of an element, if there is one. Does nothing without the feature `prefetch`.
#[inline(always)]
pub(crate) fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(feature = "prefetch")]
    prefetch_index::prefetch_index(elements, index);
    #[cfg(not(feature = "prefetch"))]
    let _ = (elements, index);
}
