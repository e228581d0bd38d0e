//! The commands, one file each.

#[cfg(feature = "live")]
pub(crate) mod change;
#[cfg(feature = "live")]
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
#[cfg(feature = "live")]
pub(crate) mod device;
#[cfg(feature = "live")]
pub(crate) mod diff;
#[cfg(feature = "live")]
pub(crate) mod doctor;
#[cfg(feature = "live")]
pub(crate) mod dummynet;
#[cfg(feature = "live")]
pub(crate) mod flows;
#[cfg(feature = "live")]
pub(crate) mod import;
#[cfg(feature = "live")]
pub(crate) mod import_file;
pub(crate) mod list;
#[cfg(feature = "live")]
pub(crate) mod live;
pub(crate) mod man;
pub(crate) mod moved;
#[cfg(feature = "live")]
pub(crate) mod packets;
#[cfg(feature = "live")]
pub(crate) mod pf;
pub(crate) mod plot;
#[cfg(feature = "live")]
pub(crate) mod record;
#[cfg(feature = "live")]
pub(crate) mod reload;
#[cfg(feature = "live")]
pub(crate) mod reserve;
#[cfg(feature = "live")]
pub(crate) mod rollback;
#[cfg(feature = "live")]
pub(crate) mod run;
pub(crate) mod schema;
#[cfg(feature = "live")]
pub(crate) mod script;
#[cfg(feature = "live")]
pub(crate) mod script_trees;
#[cfg(feature = "live")]
pub(crate) mod show;
pub(crate) mod simulate;
#[cfg(feature = "live")]
pub(crate) mod status;
#[cfg(feature = "live")]
pub(crate) mod stop;
#[cfg(feature = "live")]
pub(crate) mod subscribers;
#[cfg(feature = "parquet")]
pub(crate) mod sweep;
#[cfg(feature = "live")]
pub(crate) mod tc;
#[cfg(feature = "live")]
pub(crate) mod testbed;
#[cfg(feature = "live")]
pub(crate) mod top;
#[cfg(feature = "live")]
pub(crate) mod tune;
#[cfg(feature = "live")]
pub(crate) mod welcome;

/// The examples under `fairgate --help`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fairgate compare                  a home's access line with seven disciplines, side by side
  fairgate list                     all disciplines, with when to use each
  fairgate list fq_codel            the parameters of one, with units, defaults and ranges
  fairgate check home.toml          is this configuration valid?
  fairgate tc home.tc               tc commands as a configuration file, or run live
  fairgate dummynet home.ipfw       the same for dummynet's commands
  fairgate import 50-wan.network    files of systemd-networkd, OpenWrt, VyOS, RouterOS and others
  fairgate pf pf.conf               the queues of a pf.conf: ALTQ's and OpenBSD's
  fairgate simulate home.toml       simulate the network in this file
  fairgate sweep many.toml          the same with all combinations of values, into Parquet files
  fairgate plot results.json        draw a simulation's results: throughput, delays, queues
  fairgate run home.toml            run live between the two interfaces in this file
  fairgate status                   the state of a run
  fairgate doctor                   what is wrong with a run, its interfaces or this machine
  fairgate tune 192.0.2.1 --dry-run   what is wrong with my line: capacity, delay under load, framing
  fairgate top                      a screen of it: classes, rates, delays, drops
  fairgate flows                    its flows: rates, delays, round trip times
  fairgate packets --out last.pcapng   its last packets, with what became of each
  fairgate class add 30 rate=5mbit  change the run while it forwards; also filter, queue, change
  fairgate diff home.toml           how the run differs from its file
  fairgate subscribers diff isp.toml   what a list of subscribers would change
  fairgate subscribers set --plan home down=50mbit   change subscribers, one or many at once
  fairgate reload                   the file is read again, and its trees forward
  fairgate rollback home.toml       the versions that have forwarded; return to one of them
  fairgate stop                     end it; also what `run --detach` has left in the kernel
  fairgate reserve list             rates and delays promised to flows; also add, refresh, withdraw
  fairgate record -o evening.csv    rates, delays, backlogs and drops of a run, every 400 ms
  fairgate show                     the same in the format of tc -s
  fairgate testbed                  real TCP and ping through a run, between hosts in namespaces

Exit codes: 0 success; 1 the answer is no; 2 invalid input or usage; 3 the system refused; 4 a bug.";
