//! Lists of subscribers, read from our own CSV or JSON or from LibreQoS' files, and made into the trees of
//! both directions.
//!
//! ```text
//!   [subscribers], [plans.NAME] --> Settings --+
//!   texts: CSV, JSON, LibreQoS' files ---------+--> Subscribers: list, class numbers, trees
//!   the subscribers before -------------------+        |
//!                                                       +--> the program changes a run to the trees
//! ```
//!
//! The module does no input and output: the texts are arguments. All mistakes in the texts are reported at
//! once, each with file, line, rule and remedy. A list with a mistake is refused as a whole.
//!
//! ```
//! use fairgate_config::{Document, Registry};
//! use fairgate_run::subscribers::{DOWN, Settings, Subscribers, Text};
//!
//! let file = "[subscribers]\nfile = \"list.csv\"\ndown = \"1gbit\"\nup = \"1gbit\"\n\
//!     [plans.home]\ndown = \"100mbit\"\nup = \"20mbit\"\n";
//! let document = Document::parse("isp.toml", file)?;
//! let settings = Settings::read(&document, &Registry::builtin())?.expect("the section is there");
//! let list = Text {
//!     name: "list.csv".to_owned(),
//!     content: "id,prefixes,plan\n17,192.0.2.17 2001:db8:0:1100::/56,home\n".to_owned(),
//! };
//! let subscribers = Subscribers::read(settings, &[list], None, &Registry::builtin())?;
//! let filters = &subscribers.trees()[DOWN].classifier().filters;
//! let to_subscriber = filters.iter().filter(|filter| filter.outcome.class() == Some(16));
//! assert_eq!(to_subscriber.count(), 2);
//! # Ok::<(), fairgate_config::FileError>(())
//! ```

mod all;
mod check;
pub(crate) mod csv;
mod fields;
mod file;
mod files;
mod json;
mod libreqos;
mod limits;
mod list;
mod names;
mod numbers;
mod rewrite;
mod section;
mod texts;
mod trees;

pub use all::{Changes, Edited, LimitChanges, Subscribers};
pub(crate) use fields::{LEAST, mbit_text};
pub use files::{ListFiles, Put};
pub(crate) use libreqos::DEPTH;
pub use limits::LONGEST_LIMIT_S;
pub(crate) use limits::now_s;
pub use list::{DOWN, Limit, List, Node, Rates, Subscriber, UP};
pub use numbers::{MOST, Numbers};
pub use section::{PLANS, SUBSCRIBERS, Settings, Shaper, Source};
pub use texts::Text;
