//! JSON as tc prints it: an object may have a key several times, which is one condition of a u32 filter each.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Flag(bool),
    Integer(i128),
    Decimal(f64),
    Text(String),
    List(Vec<Node>),
    Object(Object),
}

/// The keys and values of an object, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object(pub(super) Vec<(String, Node)>);

impl Object {
    /// Returns the first value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    }

    /// Returns the text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of a key, if it is a list.
    pub(super) fn list(&self, key: &str) -> Option<&[Node]> {
        match self.get(key)? {
            Node::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the object of a key.
    pub(super) fn object(&self, key: &str) -> Option<&Object> {
        match self.get(key)? {
            Node::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the value of a key as a word, if it is a number or a text.
    pub(super) fn word(&self, key: &str) -> Option<String> {
        self.get(key)?.word()
    }

    /// Whether a key is `true`.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.get(key) == Some(&Node::Flag(true))
    }
}

impl Node {
    /// Returns a number or a text as a word.
    pub(super) fn word(&self) -> Option<String> {
        match self {
            Node::Integer(number) => Some(number.to_string()),
            Node::Decimal(number) => Some(number.to_string()),
            Node::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Returns a number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Node::Integer(number) => Some(*number as f64),
            Node::Decimal(number) => Some(*number),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(OfNode)
    }
}

struct OfNode;

impl<'de> Visitor<'de> for OfNode {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Integer(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Integer(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Decimal(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
        }
        Ok(Node::Object(Object(object)))
    }
}
