//! What the machine does to a run: its clock, its kernel, and the memory that it gives.

use fairgate_live::readings::{GroupMemory, MachineReading};

use super::{Finding, Level, counted};

/// What findings about the machine are of.
pub(crate) const MACHINE: &str = "machine";

/// Clock sources whose reading takes a device or the kernel: each reading costs about a microsecond.
const SLOW_CLOCKS: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];
/// A reading of the clock that is this slow costs more than an enqueue and a dequeue, ns.
const SLOW: f64 = 250.0;

/// Judges the machine.
pub(crate) fn judge(reading: &MachineReading) -> Vec<Finding> {
    let mut found = vec![clock(reading)];
    found.push(kernel(reading));
    if let Some(refusal) = &reading.landlock {
        found.push(Finding::new(
            Level::Note,
            "kernel",
            MACHINE,
            format!("Linux {} has no Landlock: {refusal}", reading.release),
            "A run can't confine itself to its files; it forwards without that.",
        ));
    }
    found
}

fn clock(reading: &MachineReading) -> Finding {
    let name = reading.clock.as_deref().unwrap_or("unknown");
    let seen = format!("{name}, a reading takes {:.0} ns", reading.clock_ns);
    if !SLOW_CLOCKS.contains(&name) && reading.clock_ns < SLOW {
        return Finding::ok("clock", MACHINE, seen);
    }
    let why = "A run reads the clock for each batch of packets: a slow clock costs rate and punctuality.";
    let finding = Finding::new(Level::Warning, "clock", MACHINE, seen, why);
    let fast = reading
        .clocks
        .iter()
        .find(|other| !SLOW_CLOCKS.contains(&other.as_str()));
    match fast.filter(|fast| *fast != name) {
        Some(fast) => finding.remedy(format!(
            "echo {fast} > /sys/devices/system/clocksource/clocksource0/current_clocksource"
        )),
        None => {
            finding.remedy("dmesg | grep -i clocksource  # says why the kernel does not use a faster one")
        }
    }
}

fn kernel(reading: &MachineReading) -> Finding {
    let release = &reading.release;
    match reading.has_hooks {
        None => Finding::new(
            Level::Note,
            "kernel",
            MACHINE,
            format!("Linux {release}; what it has can't be seen"),
            "The kernel tells only root whether programs can be attached at its hooks.",
        )
        .remedy("run it as root"),
        Some(false) => Finding::new(
            Level::Warning,
            "kernel",
            MACHINE,
            format!("Linux {release} takes no programs at tc's hooks"),
            "Without them (Linux 6.6 with BPF) there is no run on one interface, and none keeps the kernel's \
             own stack away from two.",
        )
        .remedy("use a kernel from Linux 6.6 on, with CONFIG_BPF_SYSCALL and CONFIG_NET_XGRESS"),
        Some(true) if !reading.has_tun => Finding::new(
            Level::Warning,
            "kernel",
            MACHINE,
            format!("Linux {release} without /dev/net/tun"),
            "A run on one interface takes what this machine sends through a TAP device.",
        )
        .remedy("modprobe tun"),
        Some(true) => Finding::ok(
            "kernel",
            MACHINE,
            format!("Linux {release}, hooks and TUN are there"),
        ),
    }
}

/// Judges the memory that the control group of a run may use.
pub(crate) fn memory(run: &str, memory: Option<&GroupMemory>) -> Finding {
    let Some(memory) = memory else {
        return Finding::ok("memory", run, "no limit of a control group");
    };
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let seen = format!(
        "{:.1} of {:.1} MB used in {}",
        megabytes(memory.used),
        megabytes(memory.limit),
        memory.group
    );
    let (level, why) = if memory.killed > 0 {
        let killed = counted(memory.killed, "process");
        (
            Level::Problem,
            format!("The kernel has killed {killed} of it for want of memory."),
        )
    } else if memory.held_up > 0 {
        let times = counted(memory.held_up, "time");
        (
            Level::Warning,
            format!("The kernel has held it up {times} to free memory: packets wait meanwhile."),
        )
    } else if memory.used / 9 >= memory.limit / 10 {
        (
            Level::Warning,
            "A larger tree, or a change of it, may find no memory.".to_owned(),
        )
    } else {
        return Finding::ok("memory", run, seen);
    };
    let more = memory.limit.saturating_mul(2);
    let unit = memory.group.rsplit('/').next().unwrap_or_default();
    let remedy = match unit.ends_with(".service") {
        true => format!("systemctl set-property {unit} MemoryMax={more} MemoryHigh=infinity"),
        false => format!("echo {more} > /sys/fs/cgroup{}/memory.max", memory.group),
    };
    Finding::new(level, "memory", run, seen, why).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> MachineReading {
        MachineReading {
            release: "6.18.1".to_owned(),
            clock: Some("tsc".to_owned()),
            clocks: vec!["tsc".to_owned(), "hpet".to_owned()],
            clock_ns: 25.0,
            has_hooks: Some(true),
            landlock: None,
            has_tun: true,
        }
    }

    fn levels(reading: &MachineReading) -> Vec<Level> {
        judge(reading).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn a_plain_machine_is_fine() {
        assert_eq!(levels(&reading()), [Level::Ok; 2]);
    }

    #[test]
    fn a_slow_clock_is_found_by_name_and_by_time() {
        let named = MachineReading {
            clock: Some("hpet".to_owned()),
            ..reading()
        };
        let found = clock(&named);
        assert_eq!(found.level, Level::Warning);
        assert!(found.remedy.unwrap().starts_with("echo tsc"));
        let slow = MachineReading {
            clock: Some("xen".to_owned()),
            clocks: vec!["xen".to_owned()],
            clock_ns: 900.0,
            ..reading()
        };
        assert!(clock(&slow).remedy.unwrap().starts_with("dmesg"));
    }

    #[test]
    fn what_a_kernel_lacks_is_found() {
        for (has_hooks, has_tun, level) in [
            (Some(false), true, Level::Warning),
            (Some(true), false, Level::Warning),
            (None, true, Level::Note),
        ] {
            let lacking = MachineReading {
                has_hooks,
                has_tun,
                ..reading()
            };
            assert_eq!(levels(&lacking)[1], level);
        }
        let open = MachineReading {
            landlock: Some("Function not implemented".to_owned()),
            ..reading()
        };
        assert_eq!(levels(&open), [Level::Ok, Level::Ok, Level::Note]);
    }

    proptest::proptest! {
        /// A limit is judged by what has happened, then by what is left.
        #[test]
        fn memory_is_judged(limit in 1u64.., share in 0u64..=100, held_up in 0u64..3, killed in 0u64..3) {
            let used = (u128::from(limit) * u128::from(share) / 100) as u64;
            let group = "/system.slice/fairgate@home.service".to_owned();
            let reading = GroupMemory { group, limit, used, held_up, killed };
            let found = memory("home", Some(&reading));
            let is_bad = killed > 0 || held_up > 0;
            if is_bad {
                let expected = if killed > 0 { Level::Problem } else { Level::Warning };
                proptest::prop_assert_eq!(found.level, expected);
                let remedy = found.remedy.unwrap();
                proptest::prop_assert!(remedy.starts_with("systemctl set-property fairgate@home.service"));
            } else if limit > 1_000 {
                proptest::prop_assert_eq!(found.level == Level::Ok, share < 90, "{} %", share);
            }
        }
    }
}
