//! The language of tc. Scripts of `tc qdisc`, `tc class` and `tc filter` lines, as for a shell or `tc
//! -batch`, are translated into the same description as a configuration file.
//!
//! ```text
//!   abbreviations  the words that a beginning of one stands for
//!   before      the options of tc itself, before the object
//!   command     a line's words -> "attach this qdisc there", "add this class", options left as words
//!   objects     the qdiscs, classes and filters of a device
//!   script      runs the lines in order: the qdiscs, classes and filters of each device at the end
//!   translate   each qdisc's options -> the parameters of Fairgate's discipline, by the table in `kinds`
//!   values      the value of an option: quantities, times, curves, lists
//!   import      the commands that make what tc shows of a machine, as text or as JSON
//!   estimator   how rates are estimated, by the times that tc takes
//!   hook        the qdiscs `ingress` and `clsact`, whose filters redirect or police arriving packets
//!   filters     u32, fw, flow, flower, basic and matchall -> the conditions of a configuration file
//!   show        the reverse: a description and the statistics of a running tree, shown as `tc qdisc show`
//!               does, by the `Look` of each kind
//!   listing     the lines of `show` as text and JSON
//!   notes       what the kernel does with a value, and the tree too
//!   amount      numbers as tc prints them
//!   round_trips dualpi2's round-trip times -> its other parameters, by tc's rules
//!   percent     rates that are a part of the device's speed
//!   transmit_queues  the queues and traffic classes of mq, multiq and mqprio
//!   sharing     the bands of ets, with the values that the user may leave out
//! ```
//!
//! Options have the defaults of tc and the kernel, which depend on the device, and not Fairgate's. The table
//! converts numbers whose units differ (times in microseconds, sfq's `perturb` in seconds). An option that
//! can't be translated is an error at its location. It is never ignored.

mod abbreviations;
mod amount;
mod before;
mod command;
mod device;
mod display;
mod estimator;
mod filters;
mod flow_red;
mod hook;
mod import;
mod kinds;
mod listing;
mod objects;
mod percent;
mod round_trips;
mod script;
mod sharing;
mod show;
mod translate;
mod transmit_queues;
mod values;

pub use crate::script::notes::Note;
pub use device::Device;
pub use display::{Amount, ClassState, Detail, EstimatedRate, Hosts, Id, Row, Shown, State, TreeState, When};
pub use import::{ImportError, Imported, Printed, import};
pub use listing::{Line, Listing, View};
pub use script::Script;
pub use show::show;
pub use translate::{Translated, TreeDirection};
