//! The compact form of filters, policers and templates.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::num::NonZeroU32;
use core::time::Duration;

use fairgate::classify::{
    AddressMask, Average, Bytes, BytesOf, Classifier, Computed, Control, Edit, Field, Fields, Filter,
    Filters, HostBy, Masked, Match, Measure, Outcome, Police, Prefix, Rule, Template,
};
use fairgate::queues::token_bucket::{Peak, Profile};
use fairgate::{Cells, ClassId, LinkLayer, Rate};

use crate::form::{Form, Reader, Refused, fields, refused};

/// Fails for the number of a choice that does not exist.
fn unknown<T>(what: &str, number: u8) -> Result<T, Refused> {
    refused(format!("there is no {what} of number {number}"))
}

impl Form for IpAddr {
    fn write(&self, into: &mut Vec<u8>) {
        match self {
            IpAddr::V4(address) => {
                4u8.write(into);
                address.to_bits().write(into);
            }
            IpAddr::V6(address) => {
                6u8.write(into);
                address.to_bits().write(into);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<IpAddr, Refused> {
        match u8::read(from)? {
            4 => Ok(Ipv4Addr::from_bits(u32::read(from)?).into()),
            6 => Ok(Ipv6Addr::from_bits(u128::read(from)?).into()),
            other => unknown("address family", other),
        }
    }
}

impl Form for Prefix {
    fn write(&self, into: &mut Vec<u8>) {
        self.address().write(into);
        self.length().write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<Prefix, Refused> {
        Ok(Prefix::new(Form::read(from)?, Form::read(from)?)?)
    }
}

macro_rules! masked {
    ($($number:ty),*) => {$(
        impl Form for Masked<$number> {
            fn write(&self, into: &mut Vec<u8>) {
                self.value().write(into);
                self.mask().write(into);
            }

            fn read(from: &mut Reader<'_>) -> Result<Masked<$number>, Refused> {
                Ok(Masked::<$number>::new(Form::read(from)?, Form::read(from)?)?)
            }
        }
    )*};
}

masked!(u8, u32);

impl Form for Bytes {
    fn write(&self, into: &mut Vec<u8>) {
        let (kind, offset) = match self.place() {
            BytesOf::Network(offset) => (0u8, offset),
            BytesOf::Transport(offset) => (1, offset.into()),
            BytesOf::HopLimit => (2, 0),
            BytesOf::Length => (3, 0),
        };
        kind.write(into);
        offset.write(into);
        self.width().write(into);
        self.mask().write(into);
        let (first, last) = self.range();
        first.write(into);
        last.write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<Bytes, Refused> {
        let (kind, offset) = (u8::read(from)?, i16::read(from)?);
        let place = match (kind, u8::try_from(offset)) {
            (0, _) => BytesOf::Network(offset),
            (1, Ok(offset)) => BytesOf::Transport(offset),
            (2, _) => BytesOf::HopLimit,
            (3, _) => BytesOf::Length,
            _ => return unknown("place of header bytes", kind),
        };
        let width = Form::read(from)?;
        let mask = Form::read(from)?;
        Ok(Bytes::new(
            place,
            width,
            mask,
            Form::read(from)?,
            Form::read(from)?,
        )?)
    }
}

impl Form for Field {
    fn write(&self, into: &mut Vec<u8>) {
        (*self as u8).write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<Field, Refused> {
        let number = u8::read(from)?;
        match Field::ALL.get(usize::from(number)) {
            Some(field) => Ok(*field),
            None => unknown("field", number),
        }
    }
}

impl Form for Rate {
    fn write(&self, into: &mut Vec<u8>) {
        self.bits_per_second().write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<Rate, Refused> {
        Rate::from_bits_per_second(u64::read(from)?).map_err(|error| Refused::new(format!("{error}")))
    }
}

impl Form for Computed {
    fn write(&self, into: &mut Vec<u8>) {
        self.first().write(into);
        self.count().map_or(0, NonZeroU32::get).write(into);
        match self.rule() {
            Rule::Hash { fields, perturb } => {
                0u8.write(into);
                fields.iter().collect::<Vec<Field>>().write(into);
                let nanos = |period: Duration| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
                perturb.map_or(0, nanos).write(into);
            }
            Rule::Number {
                field,
                and,
                xor,
                shift,
                add,
            } => {
                1u8.write(into);
                field.write(into);
                [and, xor, add].iter().for_each(|number| number.write(into));
                shift.write(into);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Computed, Refused> {
        let first = Form::read(from)?;
        let count = NonZeroU32::new(Form::read(from)?);
        let rule = match u8::read(from)? {
            0 => Rule::Hash {
                fields: Fields::from_iter(Vec::<Field>::read(from)?),
                perturb: match u64::read(from)? {
                    0 => None,
                    nanos => Some(Duration::from_nanos(nanos)),
                },
            },
            1 => Rule::Number {
                field: Form::read(from)?,
                and: Form::read(from)?,
                xor: Form::read(from)?,
                add: Form::read(from)?,
                shift: Form::read(from)?,
            },
            other => return unknown("rule", other),
        };
        Ok(Computed::new(first, count, rule)?)
    }
}

impl Form for Outcome {
    fn write(&self, into: &mut Vec<u8>) {
        match self {
            Outcome::Class(class) => {
                0u8.write(into);
                class.write(into);
            }
            Outcome::Computed(computed) => {
                1u8.write(into);
                computed.write(into);
            }
            Outcome::Drop => 3u8.write(into),
            Outcome::Continue => 4u8.write(into),
            Outcome::Chain(chain) => {
                5u8.write(into);
                chain.write(into);
            }
            // `Unclassified`. The tests compare every outcome with what is read back.
            _ => 2u8.write(into),
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Outcome, Refused> {
        match u8::read(from)? {
            0 => Ok(Outcome::Class(Form::read(from)?)),
            1 => Ok(Outcome::Computed(Form::read(from)?)),
            2 => Ok(Outcome::Unclassified),
            3 => Ok(Outcome::Drop),
            4 => Ok(Outcome::Continue),
            5 => Ok(Outcome::Chain(Form::read(from)?)),
            other => unknown("outcome", other),
        }
    }
}

impl Form for ClassId {
    fn write(&self, into: &mut Vec<u8>) {
        self.major().write(into);
        self.minor().write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<ClassId, Refused> {
        Ok(ClassId::new(Form::read(from)?, Form::read(from)?))
    }
}

const CONTROLS: [Control; 5] = [
    Control::Pass,
    Control::Drop,
    Control::Continue,
    Control::Reclassify,
    Control::Default,
];

impl Form for Control {
    fn write(&self, into: &mut Vec<u8>) {
        (*self as u8).write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<Control, Refused> {
        let number = u8::read(from)?;
        match CONTROLS.get(usize::from(number)) {
            Some(control) => Ok(*control),
            None => unknown("control", number),
        }
    }
}

impl Form for Cells {
    fn write(&self, into: &mut Vec<u8>) {
        (*self as u8).write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<Cells, Refused> {
        match u8::read(from)? {
            0 => Ok(Cells::None),
            1 => Ok(Cells::Atm),
            2 => Ok(Cells::Ptm),
            other => unknown("coding of cells", other),
        }
    }
}

impl Form for Measure {
    fn write(&self, into: &mut Vec<u8>) {
        match self {
            Measure::Length => 0u8.write(into),
            Measure::Bytes(profile) => {
                1u8.write(into);
                profile.write(into);
            }
            Measure::ExactBytes(profile) => {
                2u8.write(into);
                profile.write(into);
            }
            Measure::Packets { rate, burst } => {
                3u8.write(into);
                rate.write(into);
                burst.write(into);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Measure, Refused> {
        match u8::read(from)? {
            0 => Ok(Measure::Length),
            1 => Ok(Measure::Bytes(Form::read(from)?)),
            2 => Ok(Measure::ExactBytes(Form::read(from)?)),
            3 => Ok(Measure::Packets {
                rate: Form::read(from)?,
                burst: Form::read(from)?,
            }),
            other => unknown("measure", other),
        }
    }
}

impl Form for AddressMask {
    fn write(&self, into: &mut Vec<u8>) {
        self.ipv4().write(into);
        self.ipv6().write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<AddressMask, Refused> {
        Ok(AddressMask::of_bits(Form::read(from)?, Form::read(from)?))
    }
}

impl Form for Filters {
    fn write(&self, into: &mut Vec<u8>) {
        self.to_vec().write(into);
    }

    fn read(from: &mut Reader<'_>) -> Result<Filters, Refused> {
        let list: Vec<Filter> = Form::read(from)?;
        // The state of policers is made at once, from numbers that must be in their ranges.
        Filter::check_all(&list)?;
        Ok(Filters::new(list))
    }
}

fields! {
    Match {
        source, destination, source_port, destination_port, protocol, ethertype, outer_ethertype, vlan, dscp,
        traffic_class, priority, mark, interface, bytes,
    }
    Edit { priority, class, mark, dscp }
    LinkLayer { stripped, overhead, mpu, cells }
    Peak { rate, mtu }
    Profile { rate, burst, peak, link_layer }
    Average { rate, sample_log, weight_log }
    Police { measure, average, longest, conform, exceed }
    Filter { preference, at, chain, condition, police, edit, outcome }
    Classifier { handle, filters, default }
    HostBy { source, destination, source_port, destination_port, protocol, vlan, mark }
    Template { class, count, by, overflow }
}
