//! Translates a script for any number of devices: which trees there are, and the packets that each is for.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairgate_config::FileError;
use fairgate_config::language::Problems;
use miette::NamedSource;

use super::Translated;
use crate::script::notes::{Note, Notes};
use crate::tc::device::Device;
use crate::tc::script::{Reading, Script};

/// The packets that a tree is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeDirection {
    /// Those that leave by the device.
    Out,
    /// Those that arrive at the device.
    In,
    /// None: the device is an ifb, and no filter redirects packets to it.
    Nowhere,
}

impl Script {
    /// Translates a script for any number of devices, in the order in which they first occur. A tree of a
    /// device to which another one redirects its arriving packets is the tree of these packets. All mistakes
    /// of all lines are reported at once, except for those that follow from an earlier one.
    ///
    /// # Errors
    /// If a line can't be understood, the lines don't fit together, or something can't be carried over.
    pub fn translate_all(name: &str, text: &str, device: Device) -> Result<Vec<Translated>, FileError> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()));
        let mut problems = Problems::new(Arc::clone(&source));
        let Reading { scripts, lines } = Script::read(text, device, &source, &mut problems);
        let mut redirected = Redirected::default();
        // First the hooks, which tell what is redirected.
        let arriving: Vec<_> = scripts
            .iter()
            .map(|script| {
                let mut notes = Notes::default();
                let tree = script.translate_hook(&scripts, &mut redirected, &mut notes, &mut problems);
                (tree, notes.in_order(text))
            })
            .collect();
        let mut translated: Vec<Translated> = Vec::new();
        let mut warnings = Vec::new();
        for (script, (arriving, of_hook)) in scripts.iter().zip(arriving) {
            if !redirected.0.contains(script.device_name()) {
                translated.extend(script.translate_root(&mut problems).map(Translated::or_nowhere));
            }
            translated.extend(arriving);
            warnings.extend(of_hook);
        }
        match translated.first_mut() {
            Some(first) => first.warnings.extend(warnings),
            None if problems.count() == 0 => {
                let message = "no packet waits in a queue: all that arrive pass";
                let help = "attach a qdisc, or redirect packets to an ifb that has one";
                problems.add(0..text.len(), message, "only `ingress`", help);
            }
            None => {}
        }
        problems.unless_any_in(&lines, translated)
    }
}

impl Translated {
    /// Notes if nothing leads to the tree of an ifb.
    fn or_nowhere(mut self) -> Translated {
        if is_named_as_ifb(&self.device) {
            self.direction = TreeDirection::Nowhere;
            let text = format!(
                "no filter redirects packets to `{0}`, so its tree gets none: write tc qdisc add dev DEVICE \
                 ingress and tc filter add dev DEVICE ingress matchall action mirred egress redirect dev {0}",
                self.device
            );
            self.warnings.push(Note {
                line: None,
                text,
                is_of_nat: false,
            });
        }
        self
    }
}

/// Whether a device is probably an ifb. Nothing in a script says so: scripts create it with `ip link`. They
/// all have it in the name (`ifb0`, `ifb4eth0` of sqm-scripts).
fn is_named_as_ifb(device: &str) -> bool {
    device.to_ascii_lowercase().contains("ifb")
}

/// The devices to which arriving packets are redirected.
#[derive(Default)]
pub(super) struct Redirected(BTreeSet<String>);

impl Redirected {
    /// Adds a device. Returns whether it is new.
    pub(super) fn add(&mut self, device: &str) -> bool {
        self.0.insert(device.to_owned())
    }
}
