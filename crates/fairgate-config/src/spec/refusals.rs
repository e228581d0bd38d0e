//! What is right in itself, and can't work on a live line.

use std::time::Duration;

use super::Spec;
use crate::error::Problem;
use crate::registry::Value;
use crate::registry::{Longest, ParameterInfo};
use crate::units;

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
        self.gather(&mut |tree, path| tree.own_too_small_for(frame, "a full frame", path))
    }

    /// What may go wrong where this tree forwards frames, of which nothing is known yet but that it is Ethernet: buckets and limits
    /// that are too small at an MTU of 1500, with a VLAN tag or without one, and buckets that are no deeper than wake-ups are late.
    pub fn live_warnings(&self) -> Vec<Problem> {
        self.gather(&mut |tree, path| {
            let mut found = tree.own_too_small_for(Frame::ETHERNET, "a full frame at an MTU of 1500", path);
            let tagged = tree.own_too_small_for(
                Frame::TAGGED,
                "a full frame with a VLAN tag at an MTU of 1500",
                path,
            );
            for problem in tagged.into_iter().chain(tree.shallow_buckets(path)) {
                // Once told, a place need not be told again for a reason that is the smaller one.
                if found.iter().all(|told| told.span != problem.span) {
                    found.push(problem);
                }
            }
            found
        })
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

    fn own_too_small_for(&self, frame: Frame, a_frame: &str, path: &str) -> Vec<Problem> {
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
                        "`{name}` of `{}`{path} is {most}, but {a_frame} {what} {needed}: each one would be dropped",
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

    /// The buckets that hold back what exceeds them, and are full again sooner than a process is surely awake: what would have
    /// come in from then on is lost, and with it a part of the rate.
    fn shallow_buckets(&self, path: &str) -> Vec<Problem> {
        let name = self.discipline();
        let of_tbf = (name == "tbf").then(|| {
            let parameters = self.parameters();
            let shallow = shallow(&parameters, "burst", "rate", Frame::ETHERNET.length)?;
            Some((self.origin.parameter("burst"), format!("`{name}`{path}"), shallow))
        });
        let buckets = [("burst", "rate"), ("cburst", "ceil")];
        let of_classes = self.classes().into_iter().flat_map(|class| {
            buckets.map(|(burst, rate)| {
                // A class of htb sends while it has any tokens at all.
                let shallow = shallow(&class.parameters, burst, rate, 0)?;
                let what = format!("class {} of `{name}`{path}", class.minor);
                Some((self.origin.class_parameter(class.minor, burst), what, shallow))
            })
        });
        let told = of_tbf.into_iter().chain(of_classes).flatten();
        told.map(|(at, what, shallow)| {
            let Shallow { bucket, bytes, enough, .. } = shallow;
            let [bytes, enough] = [bytes, enough].map(units::format_size);
            let lasts = units::format_duration(Duration::from_nanos(shallow.nanos));
            self.origin.problem(
                at,
                format!(
                    "`{bucket}` of {what} is {bytes}, full again {lasts} after a frame may leave: a run that wakes up later than that \
                     does not reach the rate"
                ),
                format!("less than {} of the rate", units::format_duration(LATE)),
                format!("raise `{bucket}` to {enough} or more"),
            )
        })
        .collect()
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
                problem(self.origin.class_parameter(minor, "each"), what)
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

/// How late a process may well wake up on a machine that does little else, and several times that.
const LATE: Duration = Duration::from_micros(200);

/// A bucket that is full again soon.
struct Shallow {
    bucket: &'static str,
    bytes: u64,
    /// How long it fills after a frame may leave, ns.
    nanos: u64,
    /// How deep it should be, bytes.
    enough: u64,
}

/// Whether the bucket of the parameter `bucket`, filled at that of `rate`, is full less than [`LATE`] after `frame` bytes are in it.
fn shallow(
    parameters: &[(ParameterInfo, Value)],
    bucket: &'static str,
    rate: &str,
    frame: u32,
) -> Option<Shallow> {
    let number = |name: &str| match parameters.iter().find(|(info, _)| info.name == name)? {
        (info, Value::Number(number)) => Some((*number, *info.range.end())),
        _ => None,
    };
    let ((bytes, most), (rate, _)) = (number(bucket)?, number(rate)?);
    let rate = u128::from(rate);
    let spare = u128::from(bytes.saturating_sub(frame.into()));
    let nanos = spare * 8_000_000_000 / rate.max(1);
    let late = (rate * LATE.as_nanos()).div_ceil(8_000_000_000);
    // No bucket is deep enough for the rate of no line.
    let enough = u64::try_from(late).ok()?.checked_add(frame.into());
    let enough = enough.filter(|enough| *enough <= most)?;
    (nanos < LATE.as_nanos()).then_some(Shallow {
        bucket,
        bytes,
        nanos: nanos as u64,
        enough,
    })
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
