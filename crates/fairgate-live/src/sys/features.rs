//! The features of an interface that are on, by the names that ethtool(8) shows (linux/ethtool.h).

use std::os::fd::OwnedFd;

use nix::errno::Errno;

use super::interface::{control_socket, ioctl, request};

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
/// The set of strings with the names of features (`ETH_SS_FEATURES`).
const NAMES: u32 = 4;
/// The bytes of a name (`ETH_GSTRING_LEN`).
const NAME: usize = 32;
/// The words of 32 bits of each 32 features: available, wanted, active, fixed.
const BLOCK: usize = 4;
const ACTIVE: usize = 2;
/// More features than any kernel has: at present there are 64.
const MOST: usize = 1024;

/// Returns the names of the features that are on, in the network namespace of this thread.
pub(crate) fn active(interface: &str) -> Result<Vec<String>, Errno> {
    let control = control_socket()?;
    // The number of names: command, padding, a mask of 64 bits, the number.
    let mut info = [ETHTOOL_GSSET_INFO, 0, 0, 0, 0, 0];
    let mask = (1u64 << NAMES).to_ne_bytes();
    let halves = mask.as_chunks::<4>().0;
    (info[2], info[3]) = (u32::from_ne_bytes(halves[0]), u32::from_ne_bytes(halves[1]));
    ask(&control, interface, &mut info)?;
    let count = (info[4] as usize).min(MOST);
    let blocks = count.div_ceil(32);

    let mut names = vec![0; 3 + count * NAME / 4];
    names[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, NAMES, count as u32]);
    ask(&control, interface, &mut names)?;
    let mut features = vec![0; 2 + blocks * BLOCK];
    features[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
    ask(&control, interface, &mut features)?;
    Ok(named(&names[3..], &features[2..]))
}

/// Returns the names of the active features of these blocks.
fn named(names: &[u32], blocks: &[u32]) -> Vec<String> {
    let is_active = |number: usize| {
        let block = blocks.get(number / 32 * BLOCK + ACTIVE);
        block.is_some_and(|active| active >> (number % 32) & 1 == 1)
    };
    let names = names.chunks_exact(NAME / 4).enumerate();
    let active = names.filter(|(number, _)| is_active(*number));
    let text = |name: &[u32]| {
        let bytes: Vec<u8> = name.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(NAME);
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    active
        .map(|(_, name)| text(name))
        .filter(|name| !name.is_empty())
        .collect()
}

/// Has the kernel fill a structure of ethtool. It writes at most what the command and the numbers behind it
/// say: `data` has room for that.
fn ask(control: &OwnedFd, interface: &str, data: &mut [u32]) -> Result<(), Errno> {
    let mut request = request(interface).ok_or(Errno::ENODEV)?;
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    ioctl(control, libc::SIOCETHTOOL as libc::Ioctl, &mut request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_active_features_are_named() {
        let mut names = Vec::new();
        for number in 0..34u32 {
            let text = format!("feature-{number}");
            let mut name = [0; NAME];
            name[..text.len()].copy_from_slice(text.as_bytes());
            let words = name
                .as_chunks::<4>()
                .0
                .iter()
                .map(|word| u32::from_ne_bytes(*word));
            names.extend(words);
        }
        // Everything is available and wanted; 1 and 33 are active.
        let blocks = [u32::MAX, u32::MAX, 2, 0, u32::MAX, u32::MAX, 2, 0];
        assert_eq!(named(&names, &blocks), ["feature-1", "feature-33"]);
        assert!(named(&names, &[]).is_empty());
    }

    /// Every machine has a loopback interface, which can always segment.
    #[test]
    fn the_kernel_names_features() {
        let features = active("lo").unwrap();
        assert!(
            features.iter().any(|name| name == "tx-tcp-segmentation"),
            "{features:?}"
        );
        assert_eq!(active("no interface").unwrap_err(), Errno::ENODEV);
    }
}
