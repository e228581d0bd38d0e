//! `fairgate run --dev`: a home line on one interface, without a file. Each direction is a cake.

use fairgate::Rate;
use fairgate_config::units::parse_rate;
use fairgate_config::{Document, Spec};
use fairgate_live::{BackendKind, Plan};
use fairgate_scripts::tc::{Device, Script};
use miette::Diagnostic;
use thiserror::Error;

use crate::failure::Failure;

/// The options of a run without a file.
#[derive(clap::Args)]
pub(crate) struct DeviceArgs {
    /// Run on this interface, which this machine itself uses, without a file: a cake for each rate
    #[arg(long, value_name = "INTERFACE")]
    dev: Option<String>,

    /// The rate of what the interface receives, like 50mbit
    #[arg(long, value_name = "RATE", requires = "dev", value_parser = line_rate)]
    down: Option<Rate>,

    /// The rate of what the interface sends, like 10mbit
    #[arg(long, value_name = "RATE", requires = "dev", value_parser = line_rate)]
    up: Option<Rate>,

    /// Words of cake for what the interface receives, after those for both: "dual-dsthost ack-filter"
    #[arg(long, value_name = "WORDS", requires = "down")]
    down_words: Option<String>,

    /// Words of cake for what the interface sends, after those for both: "dual-srchost"
    #[arg(long, value_name = "WORDS", requires = "up")]
    up_words: Option<String>,

    /// Keep the last packets for so long, like 30s: `packet_log` of a file [default: none]
    #[arg(long, value_name = "TIME", requires = "dev")]
    packet_log: Option<String>,
}

#[derive(Debug, Error, Diagnostic)]
enum DeviceError {
    #[error("--dev needs a rate")]
    #[diagnostic(help("give --down for what the interface receives, --up for what it sends, or both"))]
    NoRate,
    #[error("{0}")]
    #[diagnostic(help("leave the word out"))]
    NoEffect(String),
    #[error("`{0}` is not a word of one line")]
    #[diagnostic(help("give the words of cake one by one, like: docsis ack-filter"))]
    Word(String),
}

/// Reads the rate of a line. A cake refuses the lowest ones by a name that the user has not written.
fn line_rate(text: &str) -> Result<Rate, String> {
    let rate = parse_rate(text).map_err(|error| error.to_string())?;
    match cake("line", rate, "", &[]) {
        Ok(_) => Ok(rate),
        Err(_) => {
            let plain = text.trim().parse::<f64>().is_ok();
            let meant = match plain {
                true => format!("without a unit it is bit/s; write {}mbit for Mbit/s", text.trim()),
                false => "write the rate of the line, like 50mbit".to_owned(),
            };
            Err(format!("{rate} is less than a line can have: {meant}"))
        }
    }
}

/// The words that the two ends of an access line share. What `ingress` means is known from the direction.
const RECEIVED: &str = " ingress";

impl DeviceArgs {
    /// Returns the interface, if the run has no file.
    pub(crate) fn device(&self) -> Option<&str> {
        self.dev.as_deref()
    }

    /// Returns the document and its plan. `words` are those of cake, in tc's language.
    pub(crate) fn read(
        &self,
        device: &str,
        words: &[String],
        backend: Option<BackendKind>,
    ) -> Result<(Document, Plan), Failure> {
        let rates = [
            ("ingress", "down", self.down, RECEIVED, &self.down_words),
            ("egress", "up", self.up, "", &self.up_words),
        ];
        let mut section = format!("[run]\ndevice = {device:?}\n");
        if let Some(length) = &self.packet_log {
            section += &format!("packet_log = {length:?}\n");
        }
        let mut queues = Vec::new();
        let mut sees_lan = Vec::new();
        for (key, name, rate, own_word, own_words) in rates {
            if let Some(rate) = rate {
                section += &format!("{key} = {name:?}\n");
                let own_words = own_words.iter().flat_map(|words| words.split(' '));
                let words = words.iter().cloned().chain(own_words.map(str::to_owned));
                // It says what the tree sees, and not what the tree does. The last of the two words counts.
                let (of_nat, words): (Vec<String>, Vec<String>) =
                    words.partition(|word| matches!(word.as_str(), "nat" | "nonat"));
                if of_nat.last().is_some_and(|word| word == "nat") {
                    sees_lan.push(key);
                }
                queues.push((name.to_owned(), cake(name, rate, own_word, &words)?));
            }
        }
        if queues.is_empty() {
            return Err(DeviceError::NoRate.into());
        }
        if let Some(first) = sees_lan.first() {
            let which = if sees_lan.len() > 1 { "both" } else { first };
            section += &format!("nat = {which:?}\n");
        }
        let document = Document::parse(device, &section)?.with_queues(queues);
        let plan = Plan::read_for(&document, backend)?;
        Ok((document, plan))
    }
}

/// Returns a cake of this rate with these words, as tc reads them.
fn cake(name: &str, rate: Rate, own_word: &str, words: &[String]) -> Result<Spec, Failure> {
    if let Some(word) = words.iter().find(|word| word.contains(['\n', ';'])) {
        return Err(DeviceError::Word(word.clone()).into());
    }
    let rate = rate.bits_per_second();
    let words: String = words.iter().map(|word| format!(" {word}")).collect();
    let command = format!("qdisc add dev {name} root cake bandwidth {rate}bit{own_word}{words}");
    let trees = Script::translate_all("the words of cake", &command, Device::default())
        .map_err(|error| error.located(|_| None))?;
    let tree = trees
        .into_iter()
        .next()
        .expect("a command that adds a root makes a tree");
    match tree.warnings.first() {
        Some(note) => Err(DeviceError::NoEffect(note.text.clone()).into()),
        None => Ok(tree.spec),
    }
}
