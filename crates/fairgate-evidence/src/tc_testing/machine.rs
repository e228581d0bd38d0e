//! What our program makes of commands: a script that grows, and the trees that it describes.

use fairgate_scripts::tc::{Device, Listing, Script, Translated, TreeDirection, TreeState, View};

/// The names that commands use for devices.
const NAMES: [(&str, &str); 8] = [
    ("$DUMMY", "dummy1"),
    ("$DEV0", "v0p0"),
    ("$DEV1", "v0p1"),
    ("$DEV2", "v0p2"),
    ("$ETH", "eth0"),
    ("$TC", "tc"),
    ("$IP", "ip"),
    ("$NS", "tcut"),
];

/// A line for a device that no case names. A script must attach something.
const ELSEWHERE: &str = "tc qdisc add dev elsewhere root pfifo limit 1\n";

/// The commands that were accepted so far.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    script: String,
    /// What tc's and the kernel's defaults depend on. All devices of a case share it.
    device: Device,
}

/// What became of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    /// Refused with this message.
    Refused(String),
    /// It is no command of tc, and changes nothing here.
    Foreign,
}

/// An output of tc.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Text(String),
    /// This object of tc is not shown by our program.
    NotShown(String),
}

impl Machine {
    /// Runs a command. It is part of the script from now on if it is accepted.
    pub(crate) fn run(&mut self, command: &str) -> Outcome {
        let line = named(command);
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() != Some(&"tc") {
            if words.starts_with(&["ip", "link", "set"]) {
                self.set_device(&words);
            } else if words.first() == Some(&"echo") && line.contains("/netdevsim/new_device") {
                // "ID PORTS QUEUES" adds a device.
                let queues = words.get(3).and_then(|word| word.trim_matches('"').parse().ok());
                self.device.queues = queues.or(Some(1));
            }
            return Outcome::Foreign;
        }
        let script = format!("{}{line}\n", self.script);
        match self.translate(&script) {
            Ok(_) => {
                self.script = script;
                Outcome::Accepted
            }
            Err(message) => Outcome::Refused(message),
        }
    }

    /// Changes the device as `ip link set` does.
    fn set_device(&mut self, words: &[&str]) {
        let after = |key: &str| {
            let at = words.iter().position(|word| *word == key)?;
            words.get(at + 1)?.parse().ok()
        };
        let Device { mtu, txqueuelen, .. } = self.device;
        self.device.mtu = after("mtu").unwrap_or(mtu);
        self.device.txqueuelen = after("txqueuelen").unwrap_or(txqueuelen);
    }

    /// Returns what our program shows for a command of tc that shows something.
    pub(crate) fn show(&self, command: &str) -> Output {
        let line = named(command);
        let mut words = line.split_whitespace().skip(1);
        let mut flags = Vec::new();
        let object = loop {
            match words.next() {
                Some(flag) if flag.starts_with('-') => flags.push(flag),
                object => break object.unwrap_or_default(),
            }
        };
        let rest: Vec<&str> = words.collect();
        let after = |key: &str| {
            let at = rest.iter().position(|word| *word == key)?;
            rest.get(at + 1).copied()
        };
        let is_class = match object {
            "qdisc" => false,
            "class" => true,
            other => return Output::NotShown(other.to_owned()),
        };
        let device = after("dev");
        let view = View {
            names_device: device.is_none(),
            in_detail: flags.contains(&"-d"),
        };
        let mut listing = Listing::default();
        for translated in self.translate(&self.script).unwrap_or_default() {
            let is_meant = match device {
                Some(device) => device == translated.device,
                None => translated.device != "elsewhere",
            };
            if is_meant && translated.direction == TreeDirection::Out {
                let tree = translated.spec.build(1).expect("the description was checked");
                listing.add(&translated.spec, &TreeState::of(&*tree), &translated.device, view);
            }
        }
        let lines = if is_class {
            &listing.classes
        } else {
            &listing.qdiscs
        };
        let with_statistics = flags.iter().any(|flag| flag.starts_with("-s"));
        let mut text = String::new();
        for line in lines {
            line.add_to(&mut text, with_statistics);
        }
        Output::Text(text)
    }

    /// Returns the trees of a script, or what is wrong with it.
    fn translate(&self, script: &str) -> Result<Vec<Translated>, String> {
        let text = format!("{script}{ELSEWHERE}");
        Script::translate_all("case", &text, self.device).map_err(|error| {
            let all = error.to_string();
            all.lines().next().unwrap_or_default().to_owned()
        })
    }
}

/// Replaces the names of devices and programs.
fn named(command: &str) -> String {
    NAMES.iter().fold(command.to_owned(), |line, (name, value)| {
        line.replace(name, value)
    })
}
