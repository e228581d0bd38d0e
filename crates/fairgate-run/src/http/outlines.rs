//! The outlines of trees that are kept, because one is long.

use std::collections::BTreeMap;

use axum::body::Bytes;

use crate::http::problem::Problem;

/// The outlines that were asked for, as JSON, of one revision of the trees: two documents at most. That of a
/// direction with 20,000 classes has 2 MB.
#[derive(Debug, Default)]
pub(crate) struct Outlines {
    revision: u64,
    /// By the interface that the direction receives from.
    documents: BTreeMap<String, Bytes>,
}

impl Outlines {
    /// Returns the revision of the trees and the outline of a direction. It is made if it is the first one of
    /// this revision: `make` also returns the revision of what it makes.
    pub(crate) fn get(
        &mut self,
        revision: u64,
        from: &str,
        make: impl FnOnce() -> Result<(u64, Vec<u8>), Problem>,
    ) -> Result<(u64, Bytes), Problem> {
        if self.revision == revision
            && let Some(document) = self.documents.get(from)
        {
            return Ok((revision, document.clone()));
        }
        let (revision, document) = make()?;
        let document = Bytes::from(document);
        if self.revision != revision {
            self.documents.clear();
            self.revision = revision;
        }
        self.documents.insert(from.to_owned(), document.clone());
        Ok((revision, document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::Kind;

    #[test]
    fn an_outline_is_made_once_for_each_revision() {
        let mut outlines = Outlines::default();
        let mut made = Vec::new();
        let asked = [
            (0, "left"),
            (0, "right"),
            (0, "left"),
            (1, "left"),
            (1, "left"),
            (2, "right"),
        ];
        for (revision, from) in asked {
            let text = format!("{revision} {from}");
            let document = outlines.get(revision, from, || {
                made.push(text.clone());
                Ok((revision, text.clone().into_bytes()))
            });
            assert_eq!(document.unwrap(), (revision, Bytes::from(text)));
            assert!(outlines.documents.len() <= 2);
        }
        assert_eq!(made, ["0 left", "0 right", "1 left", "2 right"]);
        // A failure is not kept.
        let failed = outlines.get(2, "left", || Err(Problem::new(Kind::Internal, "no")));
        assert!(failed.is_err());
        assert!(outlines.get(2, "left", || Ok((2, vec![7]))).is_ok());
    }
}
