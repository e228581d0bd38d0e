//! Checks whether two trees suit the interfaces that they run between. This needs the interfaces' MTU.

use fairgate_config::{FileError, Frame, Problem};

use crate::backend;
use crate::config::Plan;
use crate::ethernet;
use crate::vlan::Tag;

/// Rejects trees that would drop every full-sized frame, and what asks for marks or departure times, which no
/// frame carries.
///
/// # Errors
/// Lists all such problems.
pub(crate) fn check(plan: &Plan, mtu: usize) -> Result<(), FileError> {
    let frame = frame(plan, mtu, 0);
    let problems = plan.queues.iter().flat_map(|queue| {
        let mut problems = queue.asks_for_marks();
        problems.extend(queue.asks_for_departure_times());
        problems.extend(queue.too_small_for(frame));
        problems
    });
    FileError::unless_empty(problems.collect())
}

/// Returns the parts of the trees that accept full-sized frames but drop full-sized frames with a VLAN tag.
pub(crate) fn warnings(plan: &Plan, mtu: usize) -> Vec<Problem> {
    let frame = frame(plan, mtu, Tag::BYTES);
    plan.queues
        .iter()
        .flat_map(|queue| queue.too_small_for(frame))
        .collect()
}

/// A full-sized frame as the disciplines count it.
fn frame(plan: &Plan, mtu: usize, tags: usize) -> Frame {
    Frame {
        length: (mtu + ethernet::HEADER + tags) as u32,
        memory: backend::chunk_for(plan, mtu) as u32,
    }
}
