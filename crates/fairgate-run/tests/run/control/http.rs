//! A small HTTP client, which also sends what no proper client would.

use std::io::{Read, Write};

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Returns the value of a header field, or nothing.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the last word of the type of a problem.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let document = self.json();
        assert_eq!(document["status"], self.status, "{self:?}");
        let kind = document["type"].as_str().unwrap();
        kind.strip_prefix("urn:fairgate:problem:").unwrap().to_owned()
    }
}

/// Sends a request and reads the answer up to the end of the connection.
pub(crate) fn ask(
    mut stream: impl Read + Write,
    method: &str,
    target: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    if !body.is_empty() {
        request += "Content-Type: application/json\r\n";
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    for (name, value) in fields {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    request += body;
    stream.write_all(request.as_bytes()).expect("the server reads");
    answer(stream).expect("an answer")
}

/// Reads an answer up to the end of the connection. There is none if the connection was only closed.
pub(crate) fn answer(mut stream: impl Read) -> Option<Answer> {
    let mut bytes = Vec::new();
    // A server that closes while there is more to read resets the connection.
    let _ = stream.read_to_end(&mut bytes);
    // A capture is not text.
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1).expect("a status line");
    Some(Answer {
        status: status.parse().expect("a number"),
        head: head.to_owned(),
        body: body.to_owned(),
    })
}
