//! Reservations, as documents.

use serde::{Deserialize, Serialize};

/// What is done with a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReserveOrder {
    /// A reservation is added.
    Add(TermsStatus),
    /// It gets other terms.
    Change(TermsStatus),
    /// It ends.
    Withdraw {
        /// Its name.
        name: String,
    },
    /// It lives for another lifetime from now on.
    Refresh {
        /// Its name.
        name: String,
    },
    /// All are listed.
    List,
}

/// The terms of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TermsStatus {
    /// Its name.
    pub name: String,
    /// The token rate, bit/s.
    pub rate_bps: u64,
    /// The size of the token bucket, bytes.
    pub burst_bytes: u64,
    /// The peak rate, bit/s: at least the token rate. Without it, the bucket may come at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bps: Option<u64>,
    /// The minimum policed unit, bytes: shorter packets count as much. Without it, 60, the length of the
    /// shortest frame on an Ethernet cable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_packet_bytes: Option<u32>,
    /// The longest packet, bytes. Without it, the longest one of the interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_packet_bytes: Option<u32>,
    /// The longest acceptable delay, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_us: Option<u64>,
    /// The conditions of the filter in words.
    pub filter: String,
    /// What happens to packets beyond the token bucket. Without it, they are best effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<ExcessStatus>,
    /// How long it exists unless it is refreshed, milliseconds.
    pub lifetime_ms: u64,
}

/// What happens to packets of a reserved flow that are beyond its token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExcessStatus {
    /// They go to the scheduler's default class.
    BestEffort,
    /// They are dropped.
    Drop,
}

/// What a hop adds to the delay along a path (RFC 2212).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorTermsStatus {
    /// C, bytes: takes its time at the reserved rate.
    pub c_bytes: u64,
    /// D, microseconds: whatever the rate is.
    pub d_us: u64,
}

/// Reservations: the one that was added, changed or refreshed, none after it was withdrawn, or all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reservations {
    /// The revision of the trees.
    pub revision: u64,
    /// The reservations.
    pub reservations: Vec<ReservationStatus>,
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReservationStatus {
    /// The interface that its direction receives from.
    pub from: String,
    /// The path of classes to its class.
    pub class: String,
    /// What was asked for.
    pub terms: TermsStatus,
    /// The rate that is guaranteed, bit/s.
    pub reserved_bps: u64,
    /// The delay that is promised, microseconds.
    pub promised_us: f64,
    /// What the hop adds along a path. None if its bound does not have this form.
    #[serde(default)]
    pub error_terms: Option<ErrorTermsStatus>,
    /// Why there are none.
    #[serde(default)]
    pub no_error_terms: Option<String>,
    /// When it ends unless it is refreshed, in seconds from now.
    pub expires_s: f64,
}
