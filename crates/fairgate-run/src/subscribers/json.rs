//! Reads JSON (RFC 8259) with the place of each value, so that a mistake in a list of thousands of
//! subscribers is found.

use std::borrow::Cow;
use std::ops::Range;

use super::numbers::MOST;
use super::texts::Mistake;

/// A value and its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Json<'t> {
    pub(crate) value: Value<'t>,
    pub(crate) span: Range<usize>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'t> {
    Null,
    Flag(bool),
    /// As it is written.
    Number(&'t str),
    Text(Cow<'t, str>),
    List(Vec<Json<'t>>),
    Object(Vec<Member<'t>>),
}

/// A name and a value of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member<'t> {
    pub(crate) name: Cow<'t, str>,
    /// The place of the name.
    pub(crate) span: Range<usize>,
    pub(crate) value: Json<'t>,
}

impl Json<'_> {
    /// Returns its type in words.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Flag(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

/// How deep lists and objects may be nested. The reader calls itself for each level.
const DEPTH: usize = 80;

/// Reads a text that is one value.
pub(crate) fn parse(text: &str) -> Result<Json<'_>, Mistake> {
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut reader = Reader {
        text,
        at: start,
        depth: 0,
    };
    let value = reader.value()?;
    reader.skip_space();
    match reader.at == text.len() {
        true => Ok(value),
        false => Err(reader.wrong(
            "there is text after the end",
            "remove it, or put it into the list",
        )),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Returns a mistake at the next character.
    fn wrong(&self, message: &str, help: &str) -> Mistake {
        let next = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        Mistake::new(self.at..self.at + next, message, "not read", help)
    }

    fn value(&mut self) -> Result<Json<'t>, Mistake> {
        self.skip_space();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.nested(Reader::object)?,
            Some(b'[') => self.nested(Reader::list)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => self.word()?,
            None => return Err(self.wrong("a value is missing", "the text ends too early")),
        };
        Ok(Json {
            value,
            span: start..self.at,
        })
    }

    fn nested(
        &mut self,
        read: impl Fn(&mut Reader<'t>) -> Result<Value<'t>, Mistake>,
    ) -> Result<Value<'t>, Mistake> {
        if self.depth == DEPTH {
            return Err(self.wrong("lists and objects are nested too deep", "nest at most 80 of them"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value<'t>, Mistake> {
        let mut members: Vec<Member<'t>> = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_space();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.wrong(
                    "a name is missing",
                    "write names in quotation marks, and no comma after the last value",
                ));
            }
            let name = self.string()?;
            let span = start..self.at;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.wrong("a colon is missing", "write it between a name and its value"));
            }
            self.at += 1;
            let value = self.value()?;
            self.has_room(members.len())?;
            members.push(Member { name, span, value });
            if !self.goes_on(b'}')? {
                return Ok(Value::Object(members));
            }
        }
    }

    fn list(&mut self) -> Result<Value<'t>, Mistake> {
        let mut values = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(values));
        }
        loop {
            self.skip_space();
            self.has_room(values.len())?;
            values.push(self.value()?);
            if !self.goes_on(b']')? {
                return Ok(Value::List(values));
            }
        }
    }

    /// Refuses more values than there can be subscribers: nothing is read that could not be used.
    fn has_room(&self, count: usize) -> Result<(), Mistake> {
        let message = format!("a list or an object has more than {MOST} values");
        match count < MOST {
            true => Ok(()),
            false => Err(self.wrong(&message, "divide the subscribers among several runs")),
        }
    }

    /// Takes a comma, or the end of a list or an object. Returns whether it was a comma.
    fn goes_on(&mut self, end: u8) -> Result<bool, Mistake> {
        self.skip_space();
        let next = self.peek();
        if next != Some(b',') && next != Some(end) {
            return Err(self.wrong(
                "a comma or the end is missing",
                "write a comma between values, and close each list and object",
            ));
        }
        self.at += 1;
        Ok(next == Some(b','))
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Mistake> {
        let opening = self.at;
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        let mut copied = start;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let Some(special) = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
            else {
                return Err(Mistake::new(
                    opening..opening + 1,
                    "a quotation mark is not closed",
                    "opened here",
                    "close the text with a quotation mark",
                ));
            };
            self.at += special;
            match self.text.as_bytes()[self.at] {
                b'"' => {
                    let last = &self.text[copied..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(last),
                        Some(text) => Cow::Owned(text + last),
                    });
                }
                b'\\' => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[copied..self.at]);
                    let escaped = self.escape()?;
                    owned.get_or_insert_default().push(escaped);
                    copied = self.at;
                }
                _ => {
                    return Err(self.wrong(
                        "a text has a line break or a control character",
                        "close the text on its line, or write \\n",
                    ));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Mistake> {
        let help = "write one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000";
        self.at += 1;
        let simple = match self.peek() {
            Some(character @ (b'"' | b'\\' | b'/')) => char::from(character),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.hexadecimal(help)?;
                // Characters beyond the first 65,536 are two halves.
                if !(0xd800..0xdc00).contains(&high) {
                    let one = char::from_u32(high);
                    return one.ok_or_else(|| self.wrong("half of a character is missing", help));
                }
                let low = match self.text[self.at..].starts_with("\\u") {
                    true => {
                        self.at += 1;
                        self.hexadecimal(help)?
                    }
                    false => 0,
                };
                let both = low
                    .checked_sub(0xdc00)
                    .filter(|low| *low < 0x400)
                    .and_then(|low| char::from_u32(0x10000 + ((high - 0xd800) << 10) + low));
                return both.ok_or_else(|| self.wrong("half of a character is missing", help));
            }
            _ => return Err(self.wrong("this is no escape", help)),
        };
        self.at += 1;
        Ok(simple)
    }

    /// Takes the `u` of an escape and its four digits.
    fn hexadecimal(&mut self, help: &str) -> Result<u32, Mistake> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let number = number.ok_or_else(|| self.wrong("four hexadecimal digits are missing", help))?;
        self.at += 5;
        Ok(number)
    }

    fn number(&mut self) -> Result<Value<'t>, Mistake> {
        let start = self.at;
        let digits = |reader: &mut Reader<'t>| {
            let first = reader.at;
            while matches!(reader.peek(), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            reader.at - first
        };
        let help = "write a number like 17 or 2.5";
        self.at += usize::from(self.peek() == Some(b'-'));
        let has_zero = self.peek() == Some(b'0');
        let whole = digits(self);
        if whole == 0 || (has_zero && whole > 1) {
            return Err(self.wrong("this is no number", help));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if digits(self) == 0 {
                return Err(self.wrong("digits are missing after the point", help));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if digits(self) == 0 {
                return Err(self.wrong("digits are missing in the exponent", help));
            }
        }
        Ok(Value::Number(&self.text[start..self.at]))
    }

    fn word(&mut self) -> Result<Value<'t>, Mistake> {
        let words = [
            ("null", Value::Null),
            ("true", Value::Flag(true)),
            ("false", Value::Flag(false)),
        ];
        let rest = &self.text[self.at..];
        let found = words.into_iter().find(|(word, _)| rest.starts_with(word));
        let (word, value) = found
            .ok_or_else(|| self.wrong("this is no value", "write text in quotation marks: \"100mbit\""))?;
        self.at += word.len();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_have_their_places() {
        let text = r#" {"id": 17, "a\u00e9\n\ud83d\ude00": [true, null, -2.5e3, ""]} "#;
        let json = parse(text).unwrap();
        let Value::Object(members) = &json.value else {
            panic!("{json:?}");
        };
        assert_eq!(members[0].name, "id");
        assert_eq!(&text[members[0].value.span.clone()], "17");
        assert_eq!(members[1].name, "a\u{e9}\n\u{1f600}");
        let Value::List(values) = &members[1].value.value else {
            panic!("{json:?}");
        };
        let values: Vec<_> = values.iter().map(|json| json.value.clone()).collect();
        let text = Value::Text(Cow::Borrowed(""));
        assert_eq!(
            values,
            [Value::Flag(true), Value::Null, Value::Number("-2.5e3"), text]
        );
    }

    #[test]
    fn what_is_not_json_is_refused_at_its_place() {
        let cases = [
            ("[1, 2", 5),
            ("[1 2]", 3),
            ("{\"a\" 1}", 5),
            ("{a: 1}", 1),
            ("[01]", 3),
            ("[1.]", 3),
            ("[nul]", 1),
            ("\"\\x\"", 2),
            ("\"\\ud800x\"", 7),
            ("\"a\nb\"", 2),
            ("\"a", 0),
            ("[] []", 3),
            ("[1,]", 3),
        ];
        for (text, at) in cases {
            assert_eq!(parse(text).unwrap_err().span.start, at, "{text}");
        }
        let deep = "[".repeat(100);
        assert_eq!(parse(&deep).unwrap_err().span.start, 80);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{}:,\"\\\\u0d8e19.\\- atrue\n\u{e9}]{0,40}") {
            if let Err(mistake) = parse(&text) {
                prop_assert!(text.get(mistake.span).is_some());
            }
        }
    }
}
