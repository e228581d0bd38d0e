//! The tree for packets that arrive at a device: the filters of `ingress` or `clsact`.
//!
//! In the kernel a packet passes unless a filter redirects or drops it. The device that it is redirected to
//! (an ifb) has the tree in which it waits. So the tree here is the ifb's, if all packets are redirected
//! there. Otherwise it is a `prio`, whose first band takes what passes.

use fairgate_config::language::{Draft, Given, Problems};
use toml::Spanned;

use super::Translation;
use super::devices::Redirected;
use crate::script::drafts::{bands, class, named};
use crate::script::notes::Notes;
use crate::script::{Word, setting};
use crate::tc::filters::{self, Context, Goal};
use crate::tc::objects::Qdisc;
use crate::tc::script::Script;
use crate::tc::{hook, kinds};

/// The class for packets that pass.
const PASSING: u16 = 1;

/// The tree of arriving packets.
pub(super) struct Arriving<'a> {
    pub(super) draft: Draft,
    /// The device whose tree it is, if all packets are redirected there.
    pub(super) of: Option<&'a str>,
    /// The scripts of the devices to which packets are redirected.
    pub(super) targets: Vec<&'a Script>,
}

impl<'a> Translation<'a> {
    /// Returns the tree for the filters of a hook, or `None` if all packets pass.
    pub(super) fn arriving(
        &mut self,
        hook: &'a Qdisc,
        scripts: &'a [Script],
        redirected: &mut Redirected,
    ) -> Option<Arriving<'a>> {
        let filters = self.script.filters_of(hook);
        let (leaving, filters): (Vec<_>, Vec<_>) = filters
            .into_iter()
            .partition(|filter| filter.parent == Some(hook::LEAVING));
        for filter in leaving {
            let message = "filters of `egress` can't be carried over";
            let help = "attach them to the root qdisc, which chooses among its classes";
            self.problems.add(filter.kind.span(), message, "not here", help);
        }
        let location = hook.kind.span();
        let mut root = bands(&location);
        root.settings
            .push(setting(&location, "default", Given::Integer(PASSING.into())));
        let before = self.problems.count();
        let mut targets = Targets {
            scripts,
            own: self.script,
            redirected,
            notes: self.notes,
            named: Vec::new(),
            trees: Vec::new(),
        };
        let mut of_filters = Notes::default();
        let context = Context {
            handle: Some(hook::HANDLE),
            has_marks: true,
        };
        filters::add(
            &filters,
            &context,
            &mut root,
            self.problems,
            &mut of_filters,
            |filter, rule, problems| {
                let class = match &rule.redirect {
                    None => Some(Spanned::new(filter.kind.span(), PASSING)),
                    Some(device) => targets.class(device, problems),
                };
                class.map(Goal::Class)
            },
        );
        root.is_broken = self.problems.count() > before;
        let targets = targets.trees;
        self.notes.add_all(&of_filters);
        let own = self.script;
        for (number, target) in (usize::from(PASSING) + 1..).zip(&targets) {
            self.script = target;
            self.notes.add_all(&target.notes);
            let tree = target.root().and_then(|root| self.qdisc(root));
            self.orphans();
            root.is_broken |= tree.is_none();
            root.classes.extend(tree.map(|tree| class(number, tree)));
        }
        self.script = own;
        let default = root.settings.iter().find(|(key, _)| key.get_ref() == "default");
        let default = default.map(|(_, given)| given.get_ref().clone());
        if root.filters.is_empty() && !root.is_broken {
            let Some(Given::Integer(default)) = default else {
                return None;
            };
            let redirected = default.checked_sub(i128::from(PASSING) + 1)?;
            let of = targets.get(usize::try_from(redirected).ok()?)?;
            let draft = *root.classes.swap_remove(redirected as usize).inner?;
            let of = Some(of.device_name());
            return Some(Arriving { draft, of, targets });
        }
        let mut passing = named(kinds::DEFAULT.discipline, &location);
        passing.settings = self.settings(&[], &[], kinds::DEFAULT.defaults, &location);
        root.classes.insert(0, class(PASSING.into(), passing));
        Some(Arriving {
            draft: root,
            of: None,
            targets,
        })
    }
}

/// The devices to which the filters of a hook redirect packets.
struct Targets<'a, 't> {
    scripts: &'a [Script],
    own: &'a Script,
    redirected: &'t mut Redirected,
    notes: &'t mut Notes,
    /// Their names, and the classes that hold their trees.
    named: Vec<(String, u16)>,
    /// Those that have a tree. The first one is in class 2.
    trees: Vec<&'a Script>,
}

impl Targets<'_, '_> {
    /// Returns the class for packets that are redirected to `device`, or reports why they can't be.
    fn class(&mut self, device: &Word, problems: &mut Problems) -> Option<Spanned<u16>> {
        let name = device.get_ref();
        let in_class = |class: u16| Some(Spanned::new(device.span(), class));
        if let Some((_, class)) = self.named.iter().find(|(other, _)| other == name) {
            return in_class(*class);
        }
        if name == self.own.device_name() {
            let message = format!("`{name}` redirects its arriving packets to itself");
            let help = "redirect them to an ifb, and attach the tree to the ifb";
            problems.add(device.span(), message, "the same device", help);
            return None;
        }
        if !self.redirected.add(name) {
            let message = format!("another device redirects its packets to `{name}`, too");
            let help = "write a tree for each: a run shapes each direction by itself, so that two can't \
                share one tree";
            problems.add(device.span(), message, "shared by two devices", help);
            return None;
        }
        let is_it = |script: &&Script| script.device_name() == name && script.root().is_some();
        let class = match self.scripts.iter().find(is_it) {
            Some(script) => {
                self.trees.push(script);
                PASSING + self.trees.len() as u16
            }
            None => {
                let text = format!("no line attaches a tree to `{name}`: packets redirected there pass");
                self.notes.add(device.span(), text);
                PASSING
            }
        };
        self.named.push((name.clone(), class));
        in_class(class)
    }
}

#[cfg(test)]
mod tests;
