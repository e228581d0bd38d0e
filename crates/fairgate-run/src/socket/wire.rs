//! Questions and answers at the status socket. A request is one JSON object; the client then ends its side of
//! the connection, or a line. The run answers with one JSON document and ends its side.
//!
//! `{"request": "status"}`, or nothing at all, is answered by the status. Each other [`Question`] is written
//! like that, too. Documents are answered as they are, captures and pages as bytes, and what may be refused
//! as a [`Reply`]. `{"request": "record", "interval_us": 400000}` is answered by a [`Reply`] in each line:
//! they end with the run, or when the client closes the connection.

use std::borrow::Cow;

use fairgate_run_api::{Answer, ChangeMade, Detail, Interval, Mistake, Question, Refused, Reservations};
use serde::{Deserialize, Serialize};

/// What a client wants.
pub(crate) enum Request {
    Ask(Box<Question>),
    Record { interval_us: u64 },
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    request: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Stream {
    Record { interval_us: u64 },
}

/// An answer that says of which kind it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Reply {
    /// A change was made.
    Changed(ChangeMade),
    Reservations(Reservations),
    /// An interval has ended.
    Interval(Interval),
    /// Nothing was done: the trees have another revision.
    Stale {
        revision: u64,
    },
    /// Nothing was done.
    Refused {
        errors: Vec<Mistake>,
    },
}

/// Reads a request. No bytes at all are a request for the status.
pub(crate) fn read(bytes: &[u8]) -> Result<Request, Refused> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        let detail = Detail::All;
        return Ok(Request::Ask(Box::new(Question::Status { detail })));
    }
    let understood = || match &*serde_json::from_slice::<Kind<'_>>(bytes)?.request {
        "record" => {
            let Stream::Record { interval_us } = serde_json::from_slice(bytes)?;
            Ok(Request::Record { interval_us })
        }
        _ => serde_json::from_slice(bytes).map(Box::new).map(Request::Ask),
    };
    understood().map_err(|error: serde_json::Error| {
        let message = format!("the request is not understood: {error}");
        let help = "send {\"request\": \"status\"}, {\"request\": \"trees\"}, \
            {\"request\": \"change\", \"lines\": [...]}, {\"request\": \"reload\"}, \
            {\"request\": \"record\", \"interval_us\": 400000}, {\"request\": \"flows\"}, \
            {\"request\": \"packets\"} or \
            {\"request\": \"reserve\", \"order\": \"list\"}";
        Mistake::new(message, help).into()
    })
}

/// Returns the bytes of an answer, or nothing if the run has ended.
pub(crate) fn write(answer: Result<Answer, Refused>) -> serde_json::Result<Option<Vec<u8>>> {
    match answer {
        Ok(Answer::Packets(capture)) => Ok(Some(capture)),
        Ok(Answer::Page(page)) => Ok(Some(page.into_bytes())),
        Ok(Answer::Changed(made)) => line(&Reply::Changed(made)).map(Some),
        Ok(Answer::Reservations(all)) => line(&Reply::Reservations(all)).map(Some),
        Ok(document) => line(&document).map(Some),
        Err(refused) => Reply::refused(refused).map(|reply| line(&reply)).transpose(),
    }
}

/// Returns a document as one line.
pub(crate) fn line(document: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(document)?;
    bytes.push(b'\n');
    Ok(bytes)
}

impl Reply {
    /// Returns the reply to a question that is refused. A run that has ended replies nothing.
    fn refused(refused: Refused) -> Option<Reply> {
        let one = |mistake| Reply::Refused {
            errors: vec![mistake],
        };
        Some(match refused {
            Refused::Stale { revision } => Reply::Stale { revision },
            Refused::Mistakes(errors) => Reply::Refused { errors },
            Refused::Missing(mistake) => one(mistake),
            Refused::Outdated(_) | Refused::Malformed(_) => one(Mistake::new(refused.to_string(), "")),
            Refused::Ended => return None,
        })
    }
}
