//! The interfaces that a script sees: copies of this machine's, as files in a private `/sys`, and as the
//! answers of `ip`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use nix::ifaddrs::getifaddrs;
use serde::{Deserialize, Serialize};

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// What `ip link add ... type` was given: `ifb`, `dummy`. Empty for an interface of the machine.
    pub(crate) kind: String,
    pub(crate) mtu: u32,
    pub(crate) txqueuelen: u32,
    /// The link-layer address.
    pub(crate) address: String,
    pub(crate) is_up: bool,
    pub(crate) is_loopback: bool,
    /// Transmit queues.
    pub(crate) queues: usize,
    /// IP addresses with the lengths of their prefixes.
    pub(crate) addresses: Vec<(IpAddr, u32)>,
}

impl Device {
    /// An Ethernet interface with Linux's defaults. An ifb's queue holds 32 packets (`TX_Q_LIMIT` in the
    /// kernel's `drivers/net/ifb.c`).
    pub(crate) fn new(name: &str, kind: &str) -> Device {
        Device {
            name: name.to_owned(),
            kind: kind.to_owned(),
            mtu: 1500,
            txqueuelen: if kind == "ifb" { 32 } else { 1000 },
            address: address_of(name),
            is_up: kind.is_empty(),
            is_loopback: false,
            queues: 1,
            addresses: Vec::new(),
        }
    }

    /// The flags between angle brackets.
    pub(crate) fn flags(&self) -> String {
        let mut flags = vec![if self.is_loopback { "LOOPBACK" } else { "BROADCAST" }];
        if !self.is_loopback {
            flags.push("MULTICAST");
        }
        if self.is_up {
            flags.extend(["UP", "LOWER_UP"]);
        }
        flags.join(",")
    }

    /// The qdisc that the kernel attaches by itself.
    pub(crate) fn default_qdisc(&self) -> &'static str {
        match self.kind.as_str() {
            "" if !self.is_loopback => "pfifo_fast",
            _ => "noqueue",
        }
    }

    /// `UP` or `DOWN`; `UNKNOWN` for the loopback interface, which has no carrier.
    pub(crate) fn state(&self) -> &'static str {
        match (self.is_loopback, self.is_up) {
            (true, _) => "UNKNOWN",
            (false, true) => "UP",
            (false, false) => "DOWN",
        }
    }
}

/// Returns a locally administered address that depends on the name only.
fn address_of(name: &str) -> String {
    let digest = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let [a, b, c, d] = digest.to_be_bytes();
    format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// The interfaces and the default route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) devices: Vec<Device>,
    /// The router of the default route, and its interface.
    pub(crate) gateway: Option<(IpAddr, String)>,
}

impl Machine {
    /// Returns what this machine has, and interfaces with these names.
    pub(crate) fn survey(also: &[&str]) -> Machine {
        let mut machine = Machine {
            devices: Vec::new(),
            gateway: default_route(),
        };
        let mut addresses = addresses();
        let mut names: Vec<String> = entries(Path::new("/sys/class/net"));
        // The kernel's own order is by index. The loopback interface is the first one.
        names.sort_by_key(|name| number(&format!("/sys/class/net/{name}/ifindex")));
        for name in names {
            let file = |file: &str| format!("/sys/class/net/{name}/{file}");
            let fallback = Device::new(&name, "");
            machine.devices.push(Device {
                mtu: number(&file("mtu")).unwrap_or(fallback.mtu),
                txqueuelen: number(&file("tx_queue_len")).unwrap_or(fallback.txqueuelen),
                address: line(&file("address")).unwrap_or(fallback.address),
                is_up: line(&file("operstate")).is_some_and(|state| state != "down"),
                is_loopback: line(&file("type")).is_some_and(|kind| kind == "772"),
                queues: entries(Path::new(&file("queues")))
                    .iter()
                    .filter(|queue| queue.starts_with("tx-"))
                    .count()
                    .max(1),
                addresses: addresses.remove(&name).unwrap_or_default(),
                kind: String::new(),
                name,
            });
        }
        for name in also {
            if machine.find(name).is_none() {
                machine.devices.push(Device::new(name, ""));
            }
        }
        machine
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Returns the device. One that does not exist is created: a script may be for another machine.
    pub(crate) fn find_or_add(&mut self, name: &str) -> &mut Device {
        let at = self.devices.iter().position(|device| device.name == name);
        let at = at.unwrap_or_else(|| {
            self.devices.push(Device::new(name, ""));
            self.devices.len() - 1
        });
        &mut self.devices[at]
    }

    /// Returns the index by which the kernel would number the device.
    pub(crate) fn index(&self, device: &Device) -> usize {
        let at = self.devices.iter().position(|other| other.name == device.name);
        at.map_or(0, |at| at + 1)
    }

    /// Writes the interfaces as the files that scripts look at.
    pub(crate) fn write_files(&self, sys: &Path) -> io::Result<()> {
        let net = sys.join("class/net");
        fs::create_dir_all(&net)?;
        fs::create_dir_all(sys.join("module"))?;
        for stale in entries(&net) {
            if self.find(&stale).is_none() {
                fs::remove_dir_all(net.join(stale))?;
            }
        }
        for device in &self.devices {
            let folder = net.join(&device.name);
            for index in 0..device.queues {
                fs::create_dir_all(folder.join(format!("queues/tx-{index}")))?;
                fs::create_dir_all(folder.join(format!("queues/rx-{index}")))?;
            }
            fs::create_dir_all(folder.join("statistics"))?;
            for counter in ["rx_bytes", "rx_packets", "tx_bytes", "tx_packets", "tx_dropped"] {
                fs::write(folder.join("statistics").join(counter), "0\n")?;
            }
            let flags = if device.is_up { "0x1003" } else { "0x1002" };
            let kind = if device.is_loopback { 772 } else { 1 };
            let files = [
                ("address", device.address.clone()),
                ("broadcast", "ff:ff:ff:ff:ff:ff".to_owned()),
                ("carrier", u8::from(device.is_up).to_string()),
                ("duplex", "full".to_owned()),
                ("flags", flags.to_owned()),
                ("ifindex", self.index(device).to_string()),
                ("mtu", device.mtu.to_string()),
                ("operstate", device.state().to_lowercase()),
                ("speed", "1000".to_owned()),
                ("tx_queue_len", device.txqueuelen.to_string()),
                ("type", kind.to_string()),
            ];
            for (name, value) in files {
                fs::write(folder.join(name), format!("{value}\n"))?;
            }
            // A physical interface has a device, and scripts tell virtual ones by that.
            if device.kind.is_empty() && !device.is_loopback {
                let link = folder.join("device");
                if !link.is_symlink() {
                    symlink("../../../devices", link)?;
                }
            }
        }
        Ok(())
    }
}

/// The machine of a running recording: a file, and what it says as files in `/sys`.
#[derive(Debug)]
pub(crate) struct Stored<'p> {
    pub(crate) file: &'p Path,
    pub(crate) sys: &'p Path,
}

impl Stored<'_> {
    pub(crate) fn create(&self, machine: &Machine) -> io::Result<()> {
        machine.write_files(self.sys)?;
        fs::write(self.file, serde_json::to_vec(machine).map_err(io::Error::other)?)
    }

    pub(crate) fn read(&self) -> io::Result<Machine> {
        let file = fs::File::open(self.file)?;
        let file = Flock::lock(file, FlockArg::LockShared).map_err(|(_, error)| io::Error::from(error))?;
        serde_json::from_str(&io::read_to_string(&*file)?).map_err(io::Error::other)
    }

    /// Changes it. Stand-ins of one script may run at the same time, so the file is locked meanwhile.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Machine) -> T) -> io::Result<T> {
        let file = fs::OpenOptions::new().read(true).write(true).open(self.file)?;
        let file = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| io::Error::from(error))?;
        let before: Machine = serde_json::from_str(&io::read_to_string(&*file)?).map_err(io::Error::other)?;
        let mut machine = before.clone();
        let result = change(&mut machine);
        if machine != before {
            machine.write_files(self.sys)?;
            let text = serde_json::to_vec(&machine).map_err(io::Error::other)?;
            fs::write(self.file, text)?;
        }
        Ok(result)
    }
}

/// Returns the names in a folder, sorted.
pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns the addresses of each interface, without those that the kernel makes itself (`fe80::`).
fn addresses() -> BTreeMap<String, Vec<(IpAddr, u32)>> {
    let mut all: BTreeMap<String, Vec<(IpAddr, u32)>> = BTreeMap::new();
    let ip = |address: Option<nix::sys::socket::SockaddrStorage>| -> Option<IpAddr> {
        let address = address?;
        let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
        four.or(address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
    };
    for interface in getifaddrs().into_iter().flatten() {
        let (Some(address), Some(mask)) = (ip(interface.address), ip(interface.netmask)) else {
            continue;
        };
        let is_own = matches!(address, IpAddr::V6(six) if six.segments()[0] & 0xffc0 == 0xfe80);
        if !is_own {
            let length = match mask {
                IpAddr::V4(mask) => mask.to_bits().count_ones(),
                IpAddr::V6(mask) => mask.to_bits().count_ones(),
            };
            all.entry(interface.interface_name)
                .or_default()
                .push((address, length));
        }
    }
    all
}

/// Returns the IPv4 default route of `/proc/net/route`: hexadecimal, in the byte order of the machine.
fn default_route() -> Option<(IpAddr, String)> {
    let routes = fs::read_to_string("/proc/net/route").ok()?;
    routes.lines().skip(1).find_map(|route| {
        let fields: Vec<&str> = route.split_whitespace().collect();
        let [device, "00000000", gateway, ..] = fields[..] else {
            return None;
        };
        let gateway = u32::from_str_radix(gateway, 16).ok()?;
        let gateway = IpAddr::from(gateway.to_ne_bytes());
        (!gateway.is_unspecified()).then(|| (gateway, device.to_owned()))
    })
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn number(path: &str) -> Option<u32> {
    line(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_files_and_follow_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (file, sys) = (folder.path().join("machine.json"), folder.path().join("sys"));
        let stored = Stored {
            file: &file,
            sys: &sys,
        };
        stored.create(&Machine::survey(&["uplink0"])).unwrap();
        assert!(sys.join("class/net/lo").is_dir());
        let read = |name: &str| fs::read_to_string(sys.join("class/net").join(name)).unwrap();
        assert_eq!(read("uplink0/mtu"), "1500\n");
        stored
            .change(|machine| {
                machine.find_or_add("uplink0").mtu = 9000;
                machine.devices.push(Device::new("ifb7", "ifb"));
            })
            .unwrap();
        assert_eq!(read("uplink0/mtu"), "9000\n");
        assert_eq!(read("ifb7/tx_queue_len"), "32\n");
        assert_eq!(stored.read().unwrap().find("ifb7").unwrap().state(), "DOWN");
        stored
            .change(|machine| machine.devices.retain(|device| device.name != "ifb7"))
            .unwrap();
        assert!(!sys.join("class/net/ifb7").exists());
    }
}
