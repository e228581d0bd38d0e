//! Lists a running tree as `tc -s qdisc show` and `tc -s class show` do, as text or JSON.
//!
//! The work is proportional to the number of qdiscs and classes: each is found in the state of the tree by
//! the numbers on its path.

mod json;
mod line;

use fairgate_config::Spec;

use super::display::{Shown, TreeState};
use super::show::{show, show_of_workers};
pub use line::Line;

/// The qdiscs and the classes of one or several devices.
#[derive(Debug, Default)]
pub struct Listing {
    /// The qdiscs of each device, the root first.
    pub qdiscs: Vec<Line>,
    /// The classes of each device.
    pub classes: Vec<Line>,
}

/// What tc's flags say about the lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// Whether the lines name the device. tc leaves it out after `dev`.
    pub names_device: bool,
    /// Whether the details of `-d` are included.
    pub in_detail: bool,
}

impl Listing {
    /// Adds the tree of a device in this state.
    pub fn add(&mut self, spec: &Spec, state: &TreeState, device: &str, view: View) {
        self.add_shown(show(spec), state, device, view);
    }

    /// Adds the tree of a device of which each worker has one. `all` is what they did together.
    pub fn add_of_workers(
        &mut self,
        spec: &Spec,
        mut all: TreeState,
        workers: Vec<TreeState>,
        device: &str,
        view: View,
    ) {
        let count = u16::try_from(workers.len()).unwrap_or(u16::MAX);
        let Some(shown) = show_of_workers(spec, count) else {
            return self.add(spec, &all, device, view);
        };
        all.children = (1..=count.into()).zip(workers).collect();
        self.add_shown(shown, &all, device, view);
    }

    fn add_shown(
        &mut self,
        (qdiscs, classes): (Vec<Shown>, Vec<Shown>),
        state: &TreeState,
        device: &str,
        view: View,
    ) {
        let device = view.names_device.then_some(device);
        for (shown, lines) in [(&qdiscs, &mut self.qdiscs), (&classes, &mut self.classes)] {
            for shown in shown {
                lines.extend(Line::all_of(shown, state, device, view.in_detail));
            }
        }
    }
}
