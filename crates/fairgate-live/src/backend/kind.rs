//! The back ends that a configuration can name.

use std::str::FromStr;

/// A way to receive from and send to an existing interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// AF_PACKET sockets. They work with every Ethernet interface.
    Packet,
    /// AF_XDP sockets. They need native XDP in the driver, and take the frames from the kernel.
    Xdp,
}

fairgate::words!(BackendKind { "packet" => BackendKind::Packet, "xdp" => BackendKind::Xdp });

impl BackendKind {
    /// All of them, the preferred ones first.
    pub const ALL: [BackendKind; 2] = [BackendKind::Packet, BackendKind::Xdp];

    /// Returns the name in `backend = "..."` and `--backend`.
    pub fn name(self) -> &'static str {
        match self {
            BackendKind::Packet => "packet",
            BackendKind::Xdp => "xdp",
        }
    }
}

/// The error for a name that no back end has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no back end `{name}`; the back ends are: {}",
    BackendKind::ALL.map(BackendKind::name).join(", ")
)]
pub struct UnknownBackend {
    name: String,
}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<BackendKind, UnknownBackend> {
        let mut all = BackendKind::ALL.into_iter();
        all.find(|kind| kind.name() == text)
            .ok_or_else(|| UnknownBackend {
                name: text.to_owned(),
            })
    }
}
