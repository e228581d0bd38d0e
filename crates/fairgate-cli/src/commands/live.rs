//! The commands around a run: its files, what it does, how it is watched and changed.

use clap::Subcommand;
use fairgate_config::Registry;

use crate::commands::{
    change, check, diff, doctor, dummynet, flows, import_file, packets, pf, record, reload, reserve,
    rollback, run, show, status, stop, subscribers, tc, testbed, top, tune,
};
use crate::failure::{Failure, Outcome};
use crate::output::Format;

#[derive(Subcommand)]
pub(crate) enum Live {
    Check(check::Args),
    Run(Box<run::Args>),
    Status(status::Args),
    Doctor(doctor::Args),
    Top(top::Args),
    Flows(flows::Args),
    Packets(packets::Args),
    Record(record::Args),
    Class(change::ClassArgs),
    Filter(change::FilterArgs),
    Queue(change::QueueArgs),
    Change(change::Args),
    Reload(reload::Args),
    Rollback(rollback::Args),
    Stop(stop::Args),
    Diff(diff::Args),
    Subscribers(subscribers::Args),
    Reserve(reserve::Args),
    Show(show::Args),
    Tc(tc::Args),
    Dummynet(dummynet::Args),
    Pf(pf::Args),
    Import(import_file::Args),
    Testbed(testbed::Args),
    Tune(tune::Args),
}

impl Live {
    pub(crate) fn run(self, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
        match self {
            Live::Check(args) => check::run(args, registry, format),
            Live::Run(args) => run::run(*args, registry, format),
            Live::Status(args) => status::run(args, format),
            Live::Doctor(args) => doctor::run(&args, registry, format),
            Live::Top(args) => top::run(args, registry, format),
            Live::Flows(args) => flows::run(&args, format),
            Live::Packets(args) => packets::run(&args, format),
            Live::Record(args) => record::run(&args, format),
            Live::Class(args) => change::class(&args.words, format),
            Live::Filter(args) => change::filter(&args.words, format),
            Live::Queue(args) => change::queue(&args.words, format),
            Live::Change(args) => change::run(&args, format),
            Live::Reload(args) => reload::run(args, format),
            Live::Rollback(args) => rollback::run(&args, registry, format),
            Live::Stop(args) => stop::run(args, format),
            Live::Diff(args) => diff::run(&args, registry, format),
            Live::Subscribers(args) => subscribers::run(&args, registry, format),
            Live::Reserve(args) => reserve::run(&args, format),
            Live::Show(args) => show::run(args, registry, format),
            Live::Tc(args) => tc::run(args, format),
            Live::Dummynet(args) => dummynet::run(args, format),
            Live::Pf(args) => pf::run(args, format),
            Live::Import(args) => import_file::run(args, format),
            Live::Testbed(args) => testbed::run(args, registry, format),
            Live::Tune(args) => tune::run(&args, format),
        }
    }
}
