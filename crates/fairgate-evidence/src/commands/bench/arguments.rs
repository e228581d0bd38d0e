//! The arguments that describe a measurement, parsed and printed.

use clap::ValueEnum;

use crate::bench::{ALGORITHMS, Algorithm, Job, Load, Mode, Order, Sizes, Weights, Workload};

/// The maximum number of flows.
const MOST_FLOWS: u32 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LoadArg {
    /// Bursts of N packets that are drained, with N flows
    Small,
    /// Bursts of 30 N packets that are drained
    Large,
    /// Always between N and 30 N packets
    Full,
}

impl From<LoadArg> for Load {
    fn from(load: LoadArg) -> Load {
        match load {
            LoadArg::Small => Load::Small,
            LoadArg::Large => Load::Large,
            LoadArg::Full => Load::Full,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OrderArg {
    /// The flow with the shortest backlog, as in the paper
    Shortest,
    /// Any flow with equal probability
    Random,
    /// The flows in turn
    RoundRobin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WeightsArg {
    /// Weight 1 for each flow
    Equal,
    /// Weight 1 for most flows, up to 1024 for a few
    Mix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeArg {
    /// The paper's work: the flow is known, without hash and statistics
    Bare,
    /// The calls of a program: with statistics, and with flows by a hash that comes with the packet
    #[value(alias = "books")]
    Statistics,
    /// The same, and the headers of each packet are parsed and hashed
    Classified,
}

/// Everything that describes a job, except the scheduler and the flows.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Offered {
    /// The flow of the next packet
    #[arg(long, value_enum, default_value = "shortest")]
    pub(super) order: OrderArg,

    /// The weights of flows
    #[arg(long, value_enum, default_value = "equal")]
    pub(super) weights: WeightsArg,

    /// Length of packets in bytes, up to 2048: `1000`, `64-1500` for a range, `64/1500` for two lengths
    #[arg(long, default_value = "1000", value_name = "BYTES", value_parser = parse_sizes)]
    pub(super) sizes: Sizes,

    /// How schedulers are called
    #[arg(long, value_enum, default_value = "bare")]
    pub(super) mode: ModeArg,

    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
}

impl Offered {
    /// Returns the arguments of a job.
    pub(super) fn of(job: &Job) -> Offered {
        Offered {
            order: match job.workload.order {
                Order::Shortest => OrderArg::Shortest,
                Order::Random => OrderArg::Random,
                Order::RoundRobin => OrderArg::RoundRobin,
            },
            weights: match job.weights {
                Weights::Equal => WeightsArg::Equal,
                Weights::Mix => WeightsArg::Mix,
            },
            sizes: job.workload.sizes,
            mode: match job.mode {
                Mode::Bare => ModeArg::Bare,
                Mode::Statistics => ModeArg::Statistics,
                Mode::Classified => ModeArg::Classified,
            },
            seed: job.seed,
        }
    }

    pub(super) fn job(&self, algorithm: Option<Algorithm>, flows: u32, load: Load) -> Job {
        Job {
            algorithm,
            workload: Workload {
                flows,
                load,
                order: match self.order {
                    OrderArg::Shortest => Order::Shortest,
                    OrderArg::Random => Order::Random,
                    OrderArg::RoundRobin => Order::RoundRobin,
                },
                sizes: self.sizes,
            },
            weights: match self.weights {
                WeightsArg::Equal => Weights::Equal,
                WeightsArg::Mix => Weights::Mix,
            },
            mode: match self.mode {
                ModeArg::Bare => Mode::Bare,
                ModeArg::Statistics => Mode::Statistics,
                ModeArg::Classified => Mode::Classified,
            },
            seed: self.seed,
        }
    }

    /// Returns the options that give the same job again.
    pub(super) fn options(&self) -> Vec<String> {
        let name = |value: Option<clap::builder::PossibleValue>| {
            value.map_or(String::new(), |value| value.get_name().to_owned())
        };
        [
            ("--order", name(self.order.to_possible_value())),
            ("--weights", name(self.weights.to_possible_value())),
            ("--sizes", format_sizes(self.sizes)),
            ("--mode", name(self.mode.to_possible_value())),
            ("--seed", self.seed.to_string()),
        ]
        .into_iter()
        .flat_map(|(option, value)| [option.to_owned(), value])
        .collect()
    }
}

/// Parses a number of flows: `64`, `4K` (4096), `1M` (1,048,576).
pub(super) fn parse_flows(text: &str) -> Result<u32, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => text
            .strip_suffix(['m', 'M'])
            .map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    let number = digits.parse::<u32>().ok().and_then(|n| n.checked_mul(factor));
    number
        .filter(|flows| (1..=MOST_FLOWS).contains(flows))
        .ok_or_else(|| "must be a number from 1 to 1048576; 4K is 4096, 1M is 1048576".into())
}

/// Parses the name of a scheduler.
pub(super) fn parse_algorithm(text: &str) -> Result<Algorithm, String> {
    Algorithm::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
        format!(
            "the schedulers are {}; `none` is always measured",
            names.join(", ")
        )
    })
}

pub(super) fn parse_sizes(text: &str) -> Result<Sizes, String> {
    let size = |text: &str| {
        let size = text.parse().ok().filter(|size| (1..=Sizes::MOST).contains(size));
        size.ok_or_else(|| format!("a length must be a number of bytes from 1 to {}", Sizes::MOST))
    };
    if let Some((least, most)) = text.split_once('-') {
        let (least, most) = (size(least)?, size(most)?);
        return match least <= most {
            true => Ok(Sizes::Uniform(least, most)),
            false => Err(format!(
                "the range begins at {least}, which is above its end {most}; write {most}-{least}"
            )),
        };
    }
    match text.split_once('/') {
        Some((one, other)) => Ok(Sizes::Bimodal(size(one)?, size(other)?)),
        None => Ok(Sizes::Constant(size(text)?)),
    }
}

pub(super) fn format_sizes(sizes: Sizes) -> String {
    match sizes {
        Sizes::Constant(size) => size.to_string(),
        Sizes::Uniform(least, most) => format!("{least}-{most}"),
        Sizes::Bimodal(one, other) => format!("{one}/{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};

    #[test]
    fn numbers_of_flows_are_parsed_with_suffixes() {
        assert_eq!(parse_flows("1"), Ok(1));
        assert_eq!(parse_flows("4K"), Ok(4096));
        assert_eq!(parse_flows("128k"), Ok(131_072));
        assert_eq!(parse_flows("1M"), Ok(1 << 20));
        for wrong in ["0", "", "K", "1048577", "2M", "9999999M", "-1", "1.5K", "64 "] {
            assert!(parse_flows(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_parsed_and_printed_alike() {
        for text in ["1000", "64-1500", "64/1500", "2048"] {
            assert_eq!(format_sizes(parse_sizes(text).unwrap()), text);
        }
        for wrong in ["0", "2049", "64-", "/", "", "a", "64-1500-3", "1500-64"] {
            assert!(parse_sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_scheduler_is_found_by_its_name_and_an_unknown_one_lists_them() {
        for algorithm in ALGORITHMS {
            assert_eq!(parse_algorithm(algorithm.name).unwrap().name, algorithm.name);
        }
        assert!(parse_algorithm("wfq3").unwrap_err().contains("drr"));
    }

    #[test]
    fn options_give_the_same_job_again() {
        let parse = |arguments: &[String]| {
            let command = <Offered as clap::Args>::augment_args(Command::new("cycles").no_binary_name(true));
            Offered::from_arg_matches(&command.try_get_matches_from(arguments).unwrap()).unwrap()
        };
        let odd = [
            "--order",
            "round-robin",
            "--weights",
            "mix",
            "--sizes",
            "64/1500",
            "--mode",
            "classified",
            "--seed",
            "9",
        ]
        .map(String::from);
        for arguments in [&odd[..], &[]] {
            let first = parse(arguments);
            let again = parse(&first.options());
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
            let of_job = Offered::of(&first.job(None, 7, Load::Small));
            assert_eq!(format!("{first:?}"), format!("{of_job:?}"));
        }
        assert_eq!(parse(&odd).options(), odd);
    }
}
