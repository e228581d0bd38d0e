//! Values of keys outside of trees.

use toml::Spanned;

use super::fields::{ONE_DSCP, single};
use super::given::{self, Given, Mistake};
use crate::registry::{ParameterInfo, Unit, Value};

/// Reads the value of a parameter, or of a key that is not one of a discipline.
pub(crate) fn read_value(info: &ParameterInfo, given: &Spanned<Given>) -> Result<Value, Mistake> {
    match info.unit {
        Unit::Dscp => single(&ONE_DSCP, given).map(Value::Number),
        _ => given::read(info, given),
    }
}
