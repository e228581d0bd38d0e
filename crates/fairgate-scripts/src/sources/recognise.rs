//! Says by its content what a file is.

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Commands of tc.
    Tc,
    /// A shell script.
    Shell,
    /// Commands of ipfw or dnctl.
    Dummynet,
    /// A pf.conf.
    Pf,
    /// A .network file of systemd-networkd.
    Networkd,
    /// A connection of NetworkManager.
    NetworkManager,
    /// OpenWrt's `/etc/config/sqm`.
    Sqm,
    /// OpenWrt's `/etc/config/qosify`.
    Qosify,
    /// A configuration of VyOS.
    Vyos,
    /// An export of RouterOS.
    Mikrotik,
    /// What `tc -j` shows.
    Listing,
    /// A file of UCI for something else.
    OtherUci,
    /// A unit of systemd, or another file of it.
    Unit,
    /// Rules of nftables or iptables.
    Firewall,
}

impl Source {
    /// Returns what it is, in a few words.
    pub fn what(self) -> &'static str {
        match self {
            Source::Tc => "a list of tc commands",
            Source::Shell => "a shell script",
            Source::Dummynet => "a list of commands of ipfw or dnctl",
            Source::Pf => "a pf.conf",
            Source::Networkd => "a .network file of systemd-networkd",
            Source::NetworkManager => "a connection of NetworkManager",
            Source::Sqm => "OpenWrt's /etc/config/sqm",
            Source::Qosify => "OpenWrt's /etc/config/qosify",
            Source::Vyos => "a configuration of VyOS",
            Source::Mikrotik => "an export of RouterOS",
            Source::Listing => "what tc -j shows",
            Source::OtherUci => "a file of OpenWrt's UCI",
            Source::Unit => "a file of systemd",
            Source::Firewall => "a file of rules of a firewall",
        }
    }

    /// Returns the command that reads it, with FILE for its name. `None` if no command does.
    pub fn command(self) -> Option<&'static str> {
        Some(match self {
            Source::Tc => "fairgate tc FILE",
            Source::Shell => "fairgate tc --record FILE",
            Source::Dummynet => "fairgate dummynet FILE",
            Source::Pf => "fairgate pf FILE",
            Source::Networkd
            | Source::NetworkManager
            | Source::Sqm
            | Source::Qosify
            | Source::Vyos
            | Source::Mikrotik => "fairgate import FILE",
            Source::Listing => "fairgate tc --import-from FOLDER",
            Source::OtherUci | Source::Unit | Source::Firewall => return None,
        })
    }

    /// Returns what to do with it.
    pub(super) fn remedy(self) -> String {
        match self.command() {
            Some(command) => format!("read it with {command}"),
            None => "nothing in it is about queues".to_owned(),
        }
    }

    /// Whether [`commands`](super::commands) reads it.
    pub fn gives_commands(self) -> bool {
        self.command() == Some("fairgate import FILE")
    }
}

/// The sections of systemd-networkd that are queueing disciplines and their classes.
pub(super) const NETWORKD: [&str; 30] = [
    "QDisc",
    "NetworkEmulator",
    "TokenBucketFilter",
    "PIE",
    "FlowQueuePIE",
    "StochasticFairBlue",
    "StochasticFairnessQueueing",
    "BFIFO",
    "PFIFO",
    "PFIFOHeadDrop",
    "PFIFOFast",
    "CAKE",
    "ControlledDelay",
    "DeficitRoundRobinScheduler",
    "DeficitRoundRobinSchedulerClass",
    "EnhancedTransmissionSelection",
    "GenericRandomEarlyDetection",
    "FairQueueingControlledDelay",
    "FairQueueing",
    "TrivialLinkEqualizer",
    "HierarchyTokenBucket",
    "HierarchyTokenBucketClass",
    "ClassfulMultiQueueing",
    "BandMultiQueueing",
    "HeavyHitterFilter",
    "QuickFairQueueing",
    "QuickFairQueueingClass",
    "StochasticFairBlueQueueing",
    "Network",
    "Match",
];

/// Returns what a text is. `None` if it is none of these, such as a configuration of Fairgate.
pub fn recognise(text: &str) -> Option<Source> {
    let start = text.trim_start();
    if start.starts_with("[{\"kind\"")
        || start.starts_with("[{\"class\"")
        || start.starts_with("[{\"parent\"")
    {
        return Some(Source::Listing);
    }
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        .collect();
    let section = |name: &str| {
        lines
            .iter()
            .any(|line| line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) == Some(name))
    };
    let begins = |starts: &[&str]| {
        lines
            .iter()
            .any(|line| starts.iter().any(|start| line.starts_with(start)))
    };
    if NETWORKD.iter().any(|name| section(name)) || begins(&["[TrafficControl"]) {
        return Some(Source::Networkd);
    }
    if section("connection") || section("tc") {
        return Some(Source::NetworkManager);
    }
    if ["Unit", "Service", "Timer", "Install", "NetDev", "Link"]
        .iter()
        .any(|name| section(name))
    {
        return Some(Source::Unit);
    }
    if begins(&["config "]) && begins(&["option ", "list "])
        || lines.first().is_some_and(|line| line.starts_with("config "))
    {
        return Some(uci(&lines));
    }
    if begins(&["set qos ", "set traffic-policy ", "qos {", "traffic-policy {"]) {
        return Some(Source::Vyos);
    }
    if begins(&["/queue", "/interface", "/ip firewall", "/ip/firewall"]) {
        return Some(Source::Mikrotik);
    }
    if begins(&[
        "table inet ",
        "table ip ",
        "*mangle",
        "*filter",
        ":PREROUTING",
        ":INPUT ",
    ]) {
        return Some(Source::Firewall);
    }
    // Keys of a configuration of Fairgate.
    if begins(&["[queue.", "[[queue.", "[run]", "[simulation]", "[link.", "[[flow"]) {
        return None;
    }
    let words = |line: &str| -> Vec<String> {
        let words = line.split_whitespace().filter(|word| *word != "sudo");
        words
            .map(|word| word.rsplit('/').next().unwrap_or_default().to_owned())
            .take(3)
            .collect()
    };
    let count = |is: &dyn Fn(&[String]) -> bool| lines.iter().filter(|line| is(&words(line))).count();
    let is_tc = |words: &[String]| {
        let objects = ["qdisc", "class", "filter"];
        match words {
            [first, ..] if first == "tc" => true,
            [first, second, ..] => {
                objects.contains(&first.as_str())
                    && ["add", "del", "replace", "change", "show"].contains(&second.as_str())
            }
            _ => false,
        }
    };
    let is_dummynet = |words: &[String]| match words {
        [first, ..] if first == "ipfw" || first == "dnctl" => true,
        [first, _, third, ..] => {
            matches!(first.as_str(), "pipe" | "queue" | "sched") && third == "config"
                || first == "add" && matches!(third.as_str(), "pipe" | "queue" | "skipto" | "allow" | "count")
        }
        _ => false,
    };
    let is_pf = |words: &[String]| match words {
        [first, second, ..] => {
            first == "altq" && second == "on"
                || first == "dummynet" && (second == "in" || second == "out")
                || matches!(first.as_str(), "pass" | "block" | "match" | "scrub")
                    && matches!(
                        second.as_str(),
                        "in" | "out" | "quick" | "all" | "on" | "from" | "log" | "return"
                    )
        }
        _ => false,
    };
    let shell = is_shell(&lines, text);
    let (tc, dummynet, pf) = (count(&is_tc), count(&is_dummynet), count(&is_pf));
    if shell && tc.max(dummynet) < lines.len() {
        return Some(Source::Shell);
    }
    let has_queues = crate::pf::has_queues(text);
    if (pf > 0 || has_queues && tc == 0) && dummynet <= pf {
        return Some(Source::Pf);
    }
    match (tc, dummynet) {
        (0, 0) => shell.then_some(Source::Shell),
        (0, _) => Some(Source::Dummynet),
        _ => Some(Source::Tc),
    }
}

/// Whether the text needs a shell: it begins with one, or it has variables, loops or conditions.
fn is_shell(lines: &[&str], text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let has_shell = first.starts_with("#!")
        && ["sh", "bash", "ash", "dash", "zsh"]
            .iter()
            .any(|shell| first.trim_end().ends_with(shell) || first.contains(&format!("{shell} ")));
    let is_assignment = |line: &str| {
        line.split_once('=').is_some_and(|(name, value)| {
            !name.is_empty()
                && !value.starts_with(' ')
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    let is_of_shell = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        matches!(
            word,
            "if" | "for"
                | "while"
                | "case"
                | "function"
                | "fi"
                | "done"
                | "esac"
                | "echo"
                | "exit"
                | "set"
                | "export"
                | "local"
                | "ip"
                | "modprobe"
                | "iptables"
                | "ethtool"
        ) && !line.starts_with("set qos")
            || line.contains("$(")
            || line.contains("${")
            || is_assignment(line)
    };
    let constructs = lines.iter().filter(|line| is_of_shell(line)).count();
    let has_commands = lines
        .iter()
        .any(|line| line.contains("tc ") || line.contains("ipfw "));
    constructs > 0 && (has_shell || has_commands && !lines.iter().any(|line| line.starts_with("altq ")))
}

fn uci(lines: &[&str]) -> Source {
    let has_option = |names: &[&str]| {
        lines.iter().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some("option")
                && words
                    .next()
                    .is_some_and(|name| names.contains(&name.trim_matches(['\'', '"'])))
        })
    };
    let has_section = |name: &str| {
        lines.iter().any(|line| {
            line.split_whitespace()
                .nth(1)
                .map(|word| word.trim_matches(['\'', '"']))
                == Some(name)
                && line.starts_with("config")
        })
    };
    if has_section("queue") && has_option(&["script", "qdisc", "download", "upload"]) {
        return Source::Sqm;
    }
    if has_option(&[
        "bandwidth_up",
        "bandwidth_down",
        "dscp_default_udp",
        "dscp_prio",
        "dscp_default_tcp",
        "overhead_type",
    ]) {
        return Source::Qosify;
    }
    Source::OtherUci
}
