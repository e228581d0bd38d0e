//! Why the kernel did not do what it was asked for.

use std::format;
use std::io;
use std::string::{String, ToString};

use crate::form::Refused;

/// Why the kernel did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The error's number.
    pub errno: i32,
    /// What the kernel said about it.
    pub said: Option<String>,
    /// Where the mistake is: its offset in the request. After [`put`](super::put) it is the number of a
    /// discipline in the tree: the root is 0, and each one comes before those inside it.
    pub place: Option<u32>,
}

impl Failed {
    /// Returns an error without words.
    pub fn of(errno: i32) -> Failed {
        Failed {
            errno,
            said: None,
            place: None,
        }
    }

    pub(super) fn said(errno: i32, said: &str) -> Failed {
        Failed {
            said: Some(said.to_string()),
            ..Failed::of(errno)
        }
    }

    /// Returns whether what was sent is wrong, and not the machine.
    pub fn is_bad_input(&self) -> bool {
        matches!(self.errno, libc::EINVAL | libc::EMSGSIZE)
    }

    /// Returns the error of an answer that makes no sense.
    pub(super) fn damaged(what: &str) -> Failed {
        Failed::said(libc::EPROTO, &format!("the kernel's answer is damaged: {what}"))
    }
}

impl core::fmt::Display for Failed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        match &self.said {
            Some(said) => write!(f, "{said} ({error})"),
            None => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for Failed {}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        match error.raw_os_error() {
            Some(errno) => Failed::of(errno),
            None => Failed::said(libc::EIO, &error.to_string()),
        }
    }
}

impl From<Refused> for Failed {
    /// The same as if the kernel had refused the tree.
    fn from(Refused { text, node }: Refused) -> Failed {
        Failed {
            errno: libc::EINVAL,
            said: Some(text),
            place: node,
        }
    }
}
