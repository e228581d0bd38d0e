//! Whether the kernel forwards from one interface to another.

use std::fs;
use std::path::Path;

/// Returns whether this machine forwards from an interface to another one, as a bridge or as a router. What
/// else may do it is not seen: Open vSwitch, a redirect of tc, an XDP program.
pub fn is_forwarding(from: &str, to: &str) -> bool {
    between(Path::new("/"), from, to)
}

fn between(root: &Path, from: &str, to: &str) -> bool {
    let [from_bridge, to_bridge] = [from, to].map(|name| bridge(root, name));
    let is_bridged = from_bridge.is_some() && from_bridge == to_bridge;
    // A bridge is the interface of what it receives and does not forward itself.
    is_bridged || routes(root, from_bridge.as_deref().unwrap_or(from))
}

/// Returns the bridge that an interface is a port of.
fn bridge(root: &Path, name: &str) -> Option<String> {
    let folder = root.join("sys/class/net").join(name);
    let master = folder.join("brport/bridge").read_link().ok()?;
    Some(master.file_name()?.to_string_lossy().into_owned())
}

/// Whether packets that an interface receives are routed.
fn routes(root: &Path, name: &str) -> bool {
    ["ipv4", "ipv6"].into_iter().any(|family| {
        let folder = root.join("proc/sys/net").join(family).join("conf").join(name);
        fs::read_to_string(folder.join("forwarding")).is_ok_and(|text| text.trim() == "1")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_bridge_or_a_router_forwards() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let route = |family: &str, name: &str, value: &str| {
            let folder = root.join("proc/sys/net").join(family).join("conf").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("forwarding"), value).unwrap();
        };
        let enslave = |name: &str, to: &str| {
            let folder = root.join("sys/class/net").join(name).join("brport");
            fs::create_dir_all(&folder).unwrap();
            symlink(format!("../../{to}"), folder.join("bridge")).unwrap();
        };
        route("ipv4", "eth0", "1\n");
        route("ipv4", "eth1", "0\n");
        route("ipv6", "eth1", "0\n");
        // Each direction depends on the interface that receives.
        assert!(between(root, "eth0", "eth1"));
        assert!(!between(root, "eth1", "eth0"));
        route("ipv6", "eth1", "1\n");
        assert!(between(root, "eth1", "eth0"));
        // A port does not route, whatever it says; its bridge may.
        for (name, bridge) in [("eth0", "br0"), ("eth2", "br0"), ("eth3", "br1")] {
            enslave(name, bridge);
        }
        assert!(between(root, "eth0", "eth2") && between(root, "eth2", "eth0"));
        assert!(!between(root, "eth0", "eth3"));
        route("ipv4", "br0", "1\n");
        assert!(between(root, "eth0", "eth3"));
        assert!(!between(root, "eth3", "eth0"));
    }
}
