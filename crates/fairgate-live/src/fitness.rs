//! Checks whether two trees suit the interfaces that they run between. This needs the interfaces' MTU.

use fairgate_config::{FileError, Frame, Problem, Spec};

use crate::backend::{self, BackendKind};
use crate::config::Plan;
use crate::ethernet;
use crate::vlan::Tag;

/// Rejects trees that would drop every full-sized frame, and what asks for marks or departure times, which no
/// frame carries.
///
/// # Errors
/// Lists all such problems.
pub(crate) fn check(plan: &Plan, mtu: usize) -> Result<(), FileError> {
    let frame = frame(plan.backend, mtu, 0);
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
    too_small(&plan.queues, plan.backend, mtu, Tag::BYTES)
}

/// Returns the parts of trees that drop every full-sized frame, and those that drop every one with a VLAN
/// tag. A run refuses the first at its start.
pub fn too_small_at(queues: &[Spec], backend: Option<BackendKind>, mtu: usize) -> [Vec<Problem>; 2] {
    [0, Tag::BYTES].map(|tags| too_small(queues, backend, mtu, tags))
}

fn too_small(queues: &[Spec], backend: Option<BackendKind>, mtu: usize, tags: usize) -> Vec<Problem> {
    let frame = frame(backend, mtu, tags);
    queues
        .iter()
        .flat_map(|queue| queue.too_small_for(frame))
        .collect()
}

/// A full-sized frame as the disciplines count it.
fn frame(backend: Option<BackendKind>, mtu: usize, tags: usize) -> Frame {
    Frame {
        length: (mtu + ethernet::HEADER + tags) as u32,
        memory: backend::chunk_for(backend, mtu) as u32,
    }
}
