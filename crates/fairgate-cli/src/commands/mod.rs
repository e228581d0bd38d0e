//! The commands, a file for each.

pub(crate) mod bench;
pub(crate) mod bounds;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod dummynet;
pub(crate) mod list;
pub(crate) mod replay;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod script;
pub(crate) mod show;
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod tc;
pub(crate) mod testbed;
pub(crate) mod theory;
pub(crate) mod validate;

/// The examples under `fairgate --help`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fairgate compare                  a home line under seven disciplines, side by side
  fairgate list                     all disciplines, with when to use each
  fairgate list fq_codel            the parameters of one, with units, defaults and ranges
  fairgate check home.toml          is this configuration right?
  fairgate tc home.tc               tc commands as a configuration file, or live
  fairgate dummynet home.ipfw       dummynet's commands likewise
  fairgate replay traces            do our disciplines decide as those recorded from Linux?
  fairgate validate kernel-tcp      does simulated TCP do what Linux's did?
  fairgate bounds                   do schedulers keep their published guarantees?
  fairgate reproduce sqf-fig3       an experiment of a paper, measured beside published
  fairgate theory sqf               what a formula says, and the real code beside it
  fairgate simulate home.toml       the network described in it, simulated
  fairgate run home.toml            live, between the two interfaces named in it
  fairgate status                   what a run is doing
  fairgate show                     the same as tc -s would show it
  fairgate bench schedulers         what each scheduler costs on this machine
  fairgate testbed                  real TCP and ping through a run, between hosts made for it

Exit codes: 0 done; 1 the answer is no; 2 bad input or usage; 3 the environment refused.";
