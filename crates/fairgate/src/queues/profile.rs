//! The settings of a token bucket as users write them, for shapers and policers.

use super::token_bucket::{Peak, Profile};
use crate::error::ConfigError;
use crate::link_layer::LinkLayer;
use crate::rate::Rate;
use crate::registry::{Lens, Longest, Parameter, Unit, check_ranges};

/// The settings of a [`Profile`] as users write them: `peakrate` with its `mtu`.
#[derive(Clone, Debug)]
pub(super) struct ProfileSettings {
    pub(super) rate: Rate,
    pub(super) burst: u32,
    pub(super) peakrate: Option<Rate>,
    pub(super) mtu: Option<u32>,
    pub(super) link_layer: LinkLayer,
}

impl ProfileSettings {
    /// Where parsing starts. `rate` and `burst` are required, so they are always overwritten.
    pub(super) const START: ProfileSettings = ProfileSettings {
        rate: Rate::mbit(1),
        burst: 0,
        peakrate: None,
        mtu: None,
        link_layer: LinkLayer::NONE,
    };

    /// The settings that give `profile`.
    pub(super) fn of(profile: &Profile) -> ProfileSettings {
        ProfileSettings {
            rate: profile.rate,
            burst: profile.burst,
            peakrate: profile.peak.map(|peak| peak.rate),
            mtu: profile.peak.map(|peak| peak.mtu),
            link_layer: profile.link_layer,
        }
    }

    /// The longest packet that the bucket of `burst` bytes can hold.
    pub(super) fn first_bucket(&self) -> Longest {
        Longest::Length(self.burst.into())
    }

    /// The longest packet that the peak rate's bucket can hold.
    pub(super) fn second_bucket(&self) -> Option<Longest> {
        self.mtu.map(|mtu| Longest::Length(mtu.into()))
    }

    pub(super) fn profile(self) -> Result<Profile, ConfigError> {
        let peak = match (self.peakrate, self.mtu) {
            (Some(rate), Some(mtu)) => Some(Peak { rate, mtu }),
            (None, None) => None,
            (Some(rate), None) => {
                return Err(ConfigError::conflict(
                    "peakrate",
                    rate,
                    "given together with `mtu`",
                    "add the depth of its bucket: mtu = \"1514b\" on Ethernet",
                ));
            }
            (None, Some(mtu)) => {
                return Err(ConfigError::conflict(
                    "mtu",
                    mtu,
                    "given together with `peakrate`",
                    "leave it out, or add the peak rate",
                ));
            }
        };
        Ok(Profile {
            peak,
            link_layer: self.link_layer,
            ..Profile::new(self.rate, self.burst)
        })
    }
}

/// Checks a profile.
///
/// # Errors
/// If the depth of a bucket is 0, or if the peak rate is not above the rate.
pub(super) fn check(profile: &Profile) -> Result<(), ConfigError> {
    check_ranges(PROFILE, &mut ProfileSettings::of(profile))?;
    profile.check_peak()
}

// The parameters of a profile. Their descriptions depend on whether the profile shapes or polices.

const PROFILE: &[Parameter<ProfileSettings>] = &[
    rate("", |profile, _| &mut profile.rate),
    burst("", |profile, _| &mut profile.burst),
    peakrate("", |profile, _| &mut profile.peakrate),
    mtu("", |profile, _| &mut profile.mtu),
];

pub(super) const fn rate<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::required("rate", Unit::Rate, 1..=u64::MAX, doc, field)
}

pub(super) const fn burst<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::required("burst", Unit::Bytes, 1..=u32::MAX as u64, doc, field)
}

pub(super) const fn peakrate<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new("peakrate", Unit::Rate, 1..=u64::MAX, doc, field)
}

pub(super) const fn mtu<S>(doc: &'static str, field: Lens<S>) -> Parameter<S> {
    Parameter::new("mtu", Unit::Bytes, 1..=u32::MAX as u64, doc, field)
}
