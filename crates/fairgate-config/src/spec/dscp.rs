//! A DSCP outside of a tree, such as the one of a simulated flow.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use toml::Spanned;

use super::fields::{ONE_DSCP, single};
use super::given::{Given, Mistake};

/// A DSCP as written: a number, or a name like `"EF"`. [`Document::dscp`](crate::Document::dscp) reads it.
#[derive(Clone, Debug)]
pub struct WrittenDscp(Given);

pub(crate) fn dscp(written: &Spanned<WrittenDscp>) -> Result<u8, Mistake> {
    single(
        &ONE_DSCP,
        &Spanned::new(written.span(), written.get_ref().0.clone()),
    )
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = WrittenDscp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 63, or a name like \"EF\"")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<WrittenDscp, E> {
        Ok(WrittenDscp(Given::Integer(number.into())))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<WrittenDscp, E> {
        Ok(WrittenDscp(Given::Text(name.to_owned())))
    }
}

impl<'de> Deserialize<'de> for WrittenDscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WrittenDscp, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}
