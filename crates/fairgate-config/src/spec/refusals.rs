//! Checks of valid descriptions that can't work in a live data plane.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairgate::classify::{Field, Filter};

use super::Spec;
use crate::error::Problem;
use crate::registry::Value;
use crate::registry::{Bucket, Longest, ParameterInfo};
use crate::units;

/// The longest frame that can arrive at a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes from the Ethernet header to the last byte of the payload.
    pub length: u32,
    /// Memory that it occupies while it is queued, in bytes. Limits on memory count these bytes.
    pub memory: u32,
}

impl Frame {
    /// A full Ethernet frame without the frame check sequence: 1500 bytes of IP.
    pub const ETHERNET: Frame = Frame::of_length(1514);
    /// A full frame with a VLAN tag.
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
    /// Returns a problem for each bucket and each limit that can't hold a frame of this size. The discipline
    /// would drop every such frame, whatever is queued. A program that knows the frames should reject a tree
    /// with such problems.
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

    /// Returns possible problems of forwarding with this tree on an Ethernet interface that is not known yet:
    /// buckets and limits that are too small at an MTU of 1500, with or without a VLAN tag, and buckets that
    /// fill faster than a late process wakes up.
    pub fn live_warnings(&self) -> Vec<Problem> {
        self.gather(&mut |tree, path| {
            let mut found = tree.own_too_small_for(Frame::ETHERNET, "a full frame at an MTU of 1500", path);
            let tagged = tree.own_too_small_for(
                Frame::TAGGED,
                "a full frame with a VLAN tag at an MTU of 1500",
                path,
            );
            for problem in tagged.into_iter().chain(tree.shallow_buckets(path)) {
                // A location that has a problem is not reported again for a weaker reason.
                if found.iter().all(|known| known.span != problem.span) {
                    found.push(problem);
                }
            }
            found
        })
    }

    /// Returns each location that uses a packet's firewall mark. A frame that arrives at an interface has no
    /// mark, so a filter on marks would match nothing, or everything. A program that forwards frames should
    /// reject a tree with such problems. There are none if some filter of the tree sets marks.
    pub fn asks_for_marks(&self) -> Vec<Problem> {
        if self.has_filter(&|filter| filter.edit.mark.is_some()) {
            return Vec::new();
        }
        self.gather(&mut Spec::own_asks_for_marks)
    }

    /// Returns each discipline that drops packets without a departure time. A frame that arrives at an
    /// interface has none. A program that forwards frames should reject a tree with such problems.
    pub fn asks_for_departure_times(&self) -> Vec<Problem> {
        self.gather(&mut |tree, path| {
            let is_timed = tree.discipline() == "etf";
            let problem = || {
                tree.origin.problem(
                    tree.origin.discipline(),
                    format!("`etf`{path} needs departure times, but a frame from an interface has none"),
                    "drops every frame".to_owned(),
                    "only the program that sends a packet can set its departure time; pace flows with `fq` \
                     and its `maxrate` instead"
                        .to_owned(),
                )
            };
            is_timed.then(problem).into_iter().collect()
        })
    }

    /// Returns the mistake of a discipline of this tree that something else than the check refuses. `number`
    /// counts disciplines: this one is 0, and each one comes before those in its classes. `by` names what
    /// refuses it, as in "the kernel". There is none if the tree has fewer disciplines.
    ///
    /// ```
    /// use fairgate_config::Spec;
    ///
    /// let tree = Spec::inline("tbf rate=20mbit burst=5kb / fq_codel")?;
    /// let problem = tree.refused_by(1, "the kernel", "no memory", "use less of it").expect("it has two");
    /// assert_eq!(problem.position(), (1, 29));
    /// assert!(problem.message.starts_with("the kernel refuses `fq_codel`"));
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    pub fn refused_by(&self, number: u32, by: &str, why: &str, help: &str) -> Option<Problem> {
        let mut left = number;
        let mut found = None;
        self.walk(&mut Vec::new(), &mut |tree, path| {
            if found.is_none() && left == 0 {
                found = Some(tree.origin.problem(
                    tree.origin.discipline(),
                    format!("{by} refuses `{}`{}: {why}", tree.discipline(), shown(path)),
                    format!("refused by {by}"),
                    help.to_owned(),
                ));
            }
            left = left.wrapping_sub(1);
        });
        found
    }

    fn has_filter(&self, is_meant: &dyn Fn(&Filter) -> bool) -> bool {
        let mut found = false;
        self.walk(&mut Vec::new(), &mut |tree, _| {
            found |= tree.settings.classifier.filters.iter().any(is_meant);
        });
        found
    }

    /// Returns the results of `find` for this tree and all trees in it. `find` gets each discipline and its
    /// path in words. Of copies that share their parts, as thousands of classes do, it gets the first one
    /// alone if that has no problem.
    fn gather(&self, find: &mut dyn FnMut(&Spec, &str) -> Vec<Problem>) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut fine = BTreeSet::new();
        self.walk(&mut Vec::new(), &mut |tree, path| {
            let parts = (
                tree.discipline(),
                Arc::as_ptr(&tree.settings),
                Arc::as_ptr(&tree.children),
            );
            if !fine.contains(&parts) {
                let problems = find(tree, &shown(path));
                if problems.is_empty() {
                    fine.insert(parts);
                }
                found.extend(problems);
            }
        });
        found
    }

    fn walk(&self, path: &mut Vec<u32>, visit: &mut dyn FnMut(&Spec, &[u32])) {
        visit(self, path);
        for (minor, _, tree) in self.trees() {
            if let Some(tree) = tree {
                path.push(minor);
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
                        "`{name}` of `{}`{path} is {most}, but {a_frame} {what} {needed}: each one would be \
                         dropped",
                        self.discipline()
                    ),
                    format!("must be at least {needed}"),
                    format!(
                        "raise `{name}` to {needed} or more, or lower the interfaces' MTU, so that frames \
                         are shorter"
                    ),
                )
            })
        };
        let longest = self.entry.longest(&self.settings, !self.children.is_empty());
        longest.into_iter().filter_map(problem).collect()
    }

    /// Returns the shaping buckets that fill faster than a process surely wakes up. Tokens that arrive in a
    /// full bucket are lost, and with them a part of the rate.
    fn shallow_buckets(&self, path: &str) -> Vec<Problem> {
        let name = self.discipline();
        let own = shallow(&self.parameters()).into_iter().map(|shallow| {
            let location = self.origin.parameter(shallow.bucket);
            (location, format!("`{name}`{path}"), shallow)
        });
        let of_classes = self.classes().into_iter().flat_map(|class| {
            shallow(&class.parameters).into_iter().map(move |shallow| {
                let location = self.origin.class_parameter(class.minor, shallow.bucket);
                (
                    location,
                    format!("class {} of `{name}`{path}", class.minor),
                    shallow,
                )
            })
        });
        own.chain(of_classes)
            .map(|(at, what, shallow)| {
                let Shallow {
                    bucket,
                    bytes,
                    enough,
                    ..
                } = shallow;
                let [bytes, enough] = [bytes, enough].map(units::format_size);
                let lasts = units::format_duration(Duration::from_nanos(shallow.nanos));
                self.origin.problem(
                at,
                format!(
                    "`{bucket}` of {what} is {bytes}. It is full again {lasts} after a frame can leave; a \
                     run that wakes up later than that does not reach the rate"
                ),
                format!("less than {} of the rate", units::format_duration(LATE)),
                format!("raise `{bucket}` to {enough} or more"),
            )
            })
            .collect()
    }

    /// Returns the filters on marks, the classes that are given to hosts by marks, and cake's parameter for
    /// marks.
    fn own_asks_for_marks(&self, path: &str) -> Vec<Problem> {
        let name = self.discipline();
        let problem = |at, what: String| {
            self.origin.problem(
                at,
                format!("{what}, but a frame from an interface has none"),
                "nothing sets a mark".to_owned(),
                "only the machine that sends or routes a packet can set a mark; use fields of the frame \
                 instead: addresses, ports, protocol, dscp, vlan"
                    .to_owned(),
            )
        };
        let filters = self.settings.classifier.filters.iter().zip(1..);
        let filters = filters
            .filter(|(filter, _)| filter.condition.mark.is_some() || filter.computes_from(Field::Mark))
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
            info.reads_marks && !matches!(value, Value::Number(0) | Value::None)
        };
        let parameter = self.parameters().into_iter().find(is_by_mark).map(|(info, _)| {
            let what = format!("`{}` of `{name}`{path} asks for a mark", info.name);
            problem(self.origin.parameter(info.name), what)
        });
        filters.chain(templates).chain(parameter).collect()
    }
}

/// The delay of a wake-up that must be expected on a machine with little other work: several times the usual
/// one.
const LATE: Duration = Duration::from_micros(200);

/// A bucket that fills too fast.
struct Shallow {
    bucket: &'static str,
    bytes: u64,
    /// The time from when a frame can leave until the bucket is full, in ns.
    nanos: u64,
    /// The depth that it should have, in bytes.
    enough: u64,
}

/// Returns the buckets that are full less than [`LATE`] after a frame can leave.
fn shallow(parameters: &[(ParameterInfo, Value)]) -> Vec<Shallow> {
    let find = |(info, value): &(ParameterInfo, Value)| {
        let bucket = info.bucket?;
        let rate = parameters.iter().find(|(other, _)| other.name == bucket.rate)?;
        shallow_bucket(info, bucket, number(value)?, number(&rate.1)?)
    };
    parameters.iter().filter_map(find).collect()
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns this bucket of `bytes` if it is shallow. It is filled at `rate` bits per second.
fn shallow_bucket(info: &ParameterInfo, bucket: Bucket, bytes: u64, rate: u64) -> Option<Shallow> {
    let frame = if bucket.is_for_whole_packets {
        Frame::ETHERNET.length
    } else {
        0
    };
    let rate = u128::from(rate);
    let spare = u128::from(bytes.saturating_sub(frame.into()));
    let nanos = spare * 8_000_000_000 / rate.max(1);
    let late = (rate * LATE.as_nanos()).div_ceil(8_000_000_000);
    // At a rate above all real links no bucket is deep enough; then nothing is reported.
    let enough = u64::try_from(late).ok()?.checked_add(frame.into());
    let enough = enough.filter(|enough| info.range.contains(enough))?;
    (nanos < LATE.as_nanos()).then_some(Shallow {
        bucket: info.name,
        bytes,
        nanos: nanos as u64,
        enough,
    })
}

/// Returns the path to a discipline as a part of a sentence; nothing for the root.
fn shown(path: &[u32]) -> String {
    let numbers: Vec<String> = path.iter().map(u32::to_string).collect();
    match path {
        [] => String::new(),
        _ => format!(" in class {}", numbers.join(" / ")),
    }
}

#[cfg(test)]
#[path = "refusals_tests.rs"]
mod tests;
