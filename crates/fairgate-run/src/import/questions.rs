//! What the programs are asked.

use std::fmt;

/// A program that has customers and their sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Ubiquiti's UISP.
    Uisp,
    /// Splynx.
    Splynx,
}

/// A question, whose answer is a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// What the answer is called.
    pub(crate) name: &'static str,
    /// Behind the path of the API, with what is behind the question mark.
    pub(crate) target: &'static str,
    /// Whether it is asked for in pages.
    pub(crate) has_pages: bool,
    /// What a key must be allowed to see.
    pub(crate) permission: &'static str,
}

impl Program {
    /// Returns the path before all questions.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Program::Uisp => "/nms/api/v2.1/",
            Program::Splynx => "/api/2.0/admin/",
        }
    }

    /// Returns what is asked, in this order.
    pub(crate) fn questions(self) -> &'static [Question] {
        match self {
            Program::Uisp => &UISP,
            Program::Splynx => &SPLYNX,
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Program::Uisp => "UISP",
            Program::Splynx => "Splynx",
        })
    }
}

/// Lists of UISP are whole: its API has no pages for them.
const UISP: [Question; 3] = [
    whole("sites", "sites", "sites"),
    // Without interfaces a device has only its own address.
    whole(
        "devices",
        "devices?withInterfaces=true&authorized=true",
        "devices",
    ),
    whole("links", "data-links", "data links"),
];

/// The permissions are called as in Splynx' settings of an API key.
const SPLYNX: [Question; 8] = [
    pages("tariffs", "tariffs/internet", "Tariff plans: Internet"),
    pages("customers", "customers/customer", "Customers: Customer"),
    // Those of all customers, which needs a search by something.
    pages(
        "services",
        "customers/customer/0/internet-services?main_attributes%5Bstatus%5D=active",
        "Customers: Customer internet services",
    ),
    // It changes while it is read, so its pages would not fit together.
    whole(
        "sessions",
        "customers/customers-online",
        "Customers: Customers online",
    ),
    pages("devices", "networking/monitoring", "Networking: Monitoring"),
    pages("sites", "networking/network-sites", "Networking: Network sites"),
    pages("routers", "networking/routers", "Networking: Routers"),
    pages(
        "sectors",
        "networking/routers-sectors",
        "Networking: Router contention",
    ),
];

const fn whole(name: &'static str, target: &'static str, permission: &'static str) -> Question {
    Question {
        name,
        target,
        has_pages: false,
        permission,
    }
}

const fn pages(name: &'static str, target: &'static str, permission: &'static str) -> Question {
    Question {
        has_pages: true,
        ..whole(name, target, permission)
    }
}
