//! Why the kernel did not do what it was asked for.

use std::format;
use std::io;
use std::string::{String, ToString};

/// Why the kernel did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The error's number.
    pub errno: i32,
    /// What the kernel said about it.
    pub said: Option<String>,
}

impl Failed {
    pub(super) fn said(errno: i32, said: &str) -> Failed {
        Failed {
            errno,
            said: Some(said.to_string()),
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
            Some(errno) => Failed { errno, said: None },
            None => Failed::said(libc::EIO, &error.to_string()),
        }
    }
}
