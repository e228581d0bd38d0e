//! What is right in itself, and can't work on a live line.

use super::Spec;
use crate::error::Problem;
use crate::registry::{Longest, ParameterInfo};
use crate::units;
use crate::value::Value;

/// The longest frame that may come to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes from the Ethernet header to the last byte of the payload.
    pub length: u32,
    /// Bytes of memory that it occupies while it is queued: what limits on memory count.
    pub memory: u32,
}

impl Frame {
    /// A full frame on Ethernet, without the checksum: 1500 bytes of IP.
    pub const ETHERNET: Frame = Frame::of_length(1514);
    /// The same with a VLAN tag.
    pub const TAGGED: Frame = Frame::of_length(1518);

    /// A frame that occupies as much memory as it is long.
    pub const fn of_length(length: u32) -> Frame {
        Frame {
            length,
            memory: length,
        }
    }
}

impl Spec {
    /// Each bucket and each limit that could never hold a frame of this size: whatever is queued, the discipline would drop
    /// every one of them. Whoever knows which frames may come refuses a tree for which this is not empty.
    ///
    /// ```
    /// use fairgate_config::{Frame, Spec};
    ///
    /// let tree = Spec::inline("tbf rate=20mbit burst=5kb / fq_codel")?;
    /// assert!(tree.too_small_for(Frame::ETHERNET).is_empty());
    /// assert_eq!(tree.too_small_for(Frame::of_length(9014)).len(), 1);
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    pub fn too_small_for(&self, frame: Frame) -> Vec<Problem> {
        self.gather(&mut |tree, path| tree.own_too_small_for(frame, path))
    }

    /// Each place that asks for a packet's mark. A frame that comes in from a wire carries none, so that a filter there would
    /// match nothing, or everything: whoever forwards frames refuses a tree for which this is not empty.
    pub fn asks_for_marks(&self) -> Vec<Problem> {
        self.gather(&mut Spec::own_asks_for_marks)
    }

    /// What `find` finds in this tree and in all in it. It is given each discipline and its place.
    fn gather(&self, find: &mut dyn FnMut(&Spec, &str) -> Vec<Problem>) -> Vec<Problem> {
        let mut found = Vec::new();
        self.walk(&mut Vec::new(), &mut |tree, path| {
            found.extend(find(tree, &shown(path)));
        });
        found
    }

    fn walk(&self, path: &mut Vec<u16>, visit: &mut dyn FnMut(&Spec, &[u16])) {
        visit(self, path);
        for class in self.classes() {
            if let Some(tree) = class.tree {
                path.push(class.minor);
                tree.walk(path, visit);
                path.pop();
            }
        }
    }

    fn own_too_small_for(&self, frame: Frame, path: &str) -> Vec<Problem> {
        let size = |bytes: u64| units::format_size(bytes);
        let problem = |(name, longest): (&'static str, Longest)| {
            let (most, needed, what) = match longest {
                Longest::Length(most) => (most, frame.length, "is"),
                Longest::Memory(most) => (most, frame.memory, "occupies"),
            };
            let needed = u64::from(needed);
            (needed > most).then(|| {
                let (most, needed) = (size(most), size(needed));
                self.origin.problem(
                    self.origin.parameter(name),
                    format!(
                        "`{name}` of `{}`{path} is {most}, but a full frame {what} {needed}: each one would be dropped",
                        self.discipline()
                    ),
                    format!("must be at least {needed}"),
                    format!(
                        "raise `{name}` to {needed} or more, or let only shorter frames come: lower the interfaces' MTU"
                    ),
                )
            })
        };
        let longest = self.entry.longest(&self.settings, !self.children.is_empty());
        longest.into_iter().filter_map(problem).collect()
    }

    /// Filters on marks, classes that are given to hosts told apart by marks, and cake's parameter.
    fn own_asks_for_marks(&self, path: &str) -> Vec<Problem> {
        let name = self.discipline();
        let problem = |at, what: String| {
            self.origin.problem(
                at,
                format!("{what}, and a frame from a wire carries none"),
                "nothing sets a mark".to_owned(),
                "a mark is set by the machine that a packet comes from or that routes it; choose by what is in the frame: \
                 addresses, ports, protocol, dscp, vlan"
                    .to_owned(),
            )
        };
        let filters = self.settings.classifier.filters.iter().zip(1..);
        let filters = filters
            .filter(|(filter, _)| filter.condition.mark.is_some())
            .map(|(_, number)| {
                let what = format!("filter {number} of `{name}`{path} asks for a mark");
                problem(self.origin.condition(number - 1, "mark"), what)
            });
        let templates = self
            .settings
            .classes
            .iter()
            .filter_map(|class| class.template.as_ref());
        let templates = templates
            .filter(|template| template.by.mark != 0)
            .map(|template| {
                let minor = template.class;
                let what = format!("class {minor} of `{name}`{path} is given to hosts by their mark");
                problem(self.origin.each(minor), what)
            });
        let is_by_mark = |(info, value): &(ParameterInfo, Value)| {
            info.name == "fwmark" && !matches!(value, Value::Number(0) | Value::None)
        };
        let parameter = self.parameters().into_iter().find(is_by_mark).map(|(info, _)| {
            let what = format!("`{}` of `{name}`{path} asks for a mark", info.name);
            problem(self.origin.parameter(info.name), what)
        });
        filters.chain(templates).chain(parameter).collect()
    }
}

/// A place in a tree, for a sentence: nothing for the root.
fn shown(path: &[u16]) -> String {
    let numbers: Vec<String> = path.iter().map(u16::to_string).collect();
    match path {
        [] => String::new(),
        _ => format!(" in class {}", numbers.join(" / ")),
    }
}

#[cfg(test)]
mod tests;
