//! Whether trees can do their work between two interfaces: known only once the interfaces are.

use fairgate_config::{FileError, Frame, Problem, Spec};

use crate::frames::FrameStore;
use crate::port::{ETHERNET_HEADER, longest_frame_at};
use crate::vlan::Tag;

/// Refuses trees that would drop every full frame, and filters on what no frame carries.
///
/// # Errors
/// All such places.
pub(crate) fn check(queues: &[Spec; 2], mtu: usize) -> Result<(), FileError> {
    let frame = frame(mtu, 0);
    let problems = queues.iter().flat_map(|queue| {
        let mut problems = queue.asks_for_marks();
        problems.extend(queue.too_small_for(frame));
        problems
    });
    FileError::unless_empty(problems.collect())
}

/// Where full frames pass, and those that carry a VLAN tag do not.
pub(crate) fn doubts(queues: &[Spec; 2], mtu: usize) -> Vec<Problem> {
    let frame = frame(mtu, Tag::BYTES);
    queues
        .iter()
        .flat_map(|queue| queue.too_small_for(frame))
        .collect()
}

/// A full frame as the disciplines count it.
fn frame(mtu: usize, tags: usize) -> Frame {
    Frame {
        length: (mtu + ETHERNET_HEADER + tags) as u32,
        memory: FrameStore::chunk_for(longest_frame_at(mtu)) as u32,
    }
}
