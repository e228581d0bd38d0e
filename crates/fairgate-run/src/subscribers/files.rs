//! The files of a list, as whoever does the input and output can change them.

use fairgate_run_api::Mistake;

use super::Subscribers;

/// Puts new files into the places of the old ones.
pub type Put = Box<dyn FnOnce() -> Result<(), Mistake>>;

/// The files that a list is read from.
pub trait ListFiles: Send + Sync {
    /// Returns why the file of a text of a list can't be written, as far as that is known before.
    fn refusal(&self, list: &Subscribers, text: usize) -> Option<Mistake>;

    /// Makes ready to replace the files of texts of a list, each by its number, by ones with this content:
    /// all or none. What can fail fails here, as far as possible. `by` says who has asked for it, and what
    /// for.
    ///
    /// # Errors
    /// If a file of the list is not as it was read any more, or if one can't be written.
    fn prepare(
        &self,
        list: &Subscribers,
        changed: &[(usize, &str)],
        by: (&str, &str),
    ) -> Result<Put, Mistake>;
}
