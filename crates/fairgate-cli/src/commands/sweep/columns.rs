//! The varied values as columns of the data set. A column has one type in all its parts.

use fairgate_sim::results::Column;
use fairgate_sim::sweep::Axis;
use toml::Value;

enum Kind {
    Integer,
    Real,
    Flag,
    /// Text, and whatever is no other kind: as JSON.
    Text,
}

/// The columns before the figures.
pub(super) struct Columns(Vec<(String, Kind)>);

impl Columns {
    pub(super) fn of(axes: &[Axis]) -> Columns {
        let kind = |axis: &Axis| (axis.path.clone(), Kind::of(&axis.values));
        Columns(axes.iter().map(kind).collect())
    }

    /// Returns the columns for the rows of a run.
    pub(super) fn of_run(&self, values: &[&Value], seed: u64, rows: usize) -> Vec<(String, Column)> {
        let varied = self.0.iter().zip(values);
        let columns = varied.map(|((path, kind), value)| (path.clone(), kind.column(value, rows)));
        let seed = ("seed".to_owned(), Column::Integer(vec![Some(seed); rows]));
        columns.chain([seed]).collect()
    }
}

impl Kind {
    fn of(values: &[Value]) -> Kind {
        let all = |is: fn(&Value) -> bool| values.iter().all(is);
        if all(|value| value.as_integer().is_some_and(|number| number >= 0)) {
            Kind::Integer
        } else if all(|value| value.is_integer() || value.is_float()) {
            Kind::Real
        } else if all(Value::is_bool) {
            Kind::Flag
        } else {
            Kind::Text
        }
    }

    fn column(&self, value: &Value, rows: usize) -> Column {
        match (self, value) {
            (Kind::Integer, Value::Integer(number)) => Column::Integer(vec![Some(*number as u64); rows]),
            (Kind::Real, Value::Integer(number)) => Column::Real(vec![Some(*number as f64); rows]),
            (Kind::Real, Value::Float(number)) => Column::Real(vec![Some(*number); rows]),
            (Kind::Flag, Value::Boolean(flag)) => Column::Flag(vec![*flag; rows]),
            (_, Value::String(text)) => Column::Text(vec![text.clone(); rows]),
            (_, other) => {
                let text = serde_json::to_string(other).expect("values of TOML have text keys");
                Column::Text(vec![text; rows])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Column> {
        let table: toml::Table = toml::from_str(&format!("values = {text}")).unwrap();
        let values = table["values"].as_array().unwrap().clone();
        let kind = Kind::of(&values);
        values.iter().map(|value| kind.column(value, 1)).collect()
    }

    fn texts<const N: usize>(values: [&str; N]) -> Vec<Column> {
        values.map(|value| Column::Text(vec![value.to_owned()])).into()
    }

    #[test]
    fn a_column_has_one_type() {
        assert_eq!(
            kinds("[1, 2]"),
            [Column::Integer(vec![Some(1)]), Column::Integer(vec![Some(2)])]
        );
        assert_eq!(
            kinds("[1, 0.5]"),
            [Column::Real(vec![Some(1.0)]), Column::Real(vec![Some(0.5)])]
        );
        assert_eq!(kinds("[-1]"), [Column::Real(vec![Some(-1.0)])]);
        assert_eq!(
            kinds("[true, false]"),
            [Column::Flag(vec![true]), Column::Flag(vec![false])]
        );
        assert_eq!(kinds("[\"5ms\", \"a \\\"b\\\"\"]"), texts(["5ms", "a \"b\""]));
        assert_eq!(kinds("[\"none\", 5, true]"), texts(["none", "5", "true"]));
        assert_eq!(
            kinds("[{ discipline = \"fifo\", limit = 5 }, [1, \"x\"]]"),
            texts(["{\"discipline\":\"fifo\",\"limit\":5}", "[1,\"x\"]"])
        );
    }
}
