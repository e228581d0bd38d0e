//! A new file beside the old one, which takes its name.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::PathBuf;

use fairgate_config::folder::Folder;
use nix::unistd::geteuid;

use crate::output;

/// A new file that has not its name yet. It is removed unless it gets it.
pub(crate) struct Draft {
    folder: Folder,
    /// The name of the file that is replaced.
    name: OsString,
    /// The file that is replaced, as it was found. None: there was none.
    found: Option<Metadata>,
    /// Whose owner, permissions and other attributes the new file has.
    like: File,
}

/// What tells one state of a file from another one.
type State = (u64, u64, u64, [i64; 4]);

impl Draft {
    /// Writes a new file beside the one of this name, or for this name if none was `found`. It has the owner,
    /// the permissions, the access list and other attributes of `like`; of a folder, owner and permissions.
    pub(crate) fn write(
        folder: Folder,
        name: OsString,
        found: Option<Metadata>,
        like: File,
        content: &str,
    ) -> io::Result<Draft> {
        if found.as_ref().is_some_and(|found| found.nlink() > 1) {
            let message = "it is no file with only this name, and another one would take its place";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let draft = Draft {
            folder,
            name,
            found,
            like,
        };
        draft.fill(content)?;
        Ok(draft)
    }

    fn fill(&self, content: &str) -> io::Result<()> {
        let (draft, like) = (draft_of(&self.name), self.like.metadata()?);
        // What is left of a run that was killed meanwhile.
        match self.folder.remove(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = self.folder.create_new(&draft)?;
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (like.uid(), like.gid()) {
            fchown(&file, Some(like.uid()), Some(like.gid())).map_err(|_| not_given(&like))?;
        }
        match like.is_file() {
            true => output::keep_attributes(&self.like, &file)?,
            // Nobody executes what is in a folder.
            false => file.set_permissions(Permissions::from_mode(like.mode() & 0o666))?,
        }
        file.write_all(content.as_bytes())?;
        file.sync_all()
    }

    /// Returns where the new file goes.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Returns the file that is replaced, as it was found.
    pub(super) fn found(&self) -> Option<&Metadata> {
        self.found.as_ref()
    }

    /// Returns whether the old file is still as it was found, or still missing.
    pub(super) fn is_due(&self) -> io::Result<bool> {
        let now = match self.folder.look(&self.name).and_then(|file| file.metadata()) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(now.as_ref().map(state) == self.found.as_ref().map(state))
    }

    /// Gives the new file the name of the old one.
    pub(crate) fn put(&self) -> io::Result<()> {
        self.folder.rename(&draft_of(&self.name), &self.name)?;
        // The new file is there, whatever becomes of this: a crash may bring back the old one as a whole.
        let _ = self.folder.sync();
        Ok(())
    }

    /// Puts a file with what the old one had in the place of the new one, or none if there was none.
    pub(crate) fn put_back(&self, before: Option<&str>) -> io::Result<()> {
        match before {
            Some(content) => {
                self.fill(content)?;
                self.put()
            }
            None => self.folder.remove(&self.name),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is gone if it got its name.
        let _ = self.folder.remove(&draft_of(&self.name));
    }
}

/// Returns the name of a new file until it gets that of the old one.
pub(super) fn draft_of(name: &OsStr) -> OsString {
    let mut draft = OsString::from(".");
    draft.push(name);
    draft.push(".fairgate");
    draft
}

fn state(found: &Metadata) -> State {
    let times = [
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ];
    (found.dev(), found.ino(), found.len(), times)
}

/// Says that a new file can't belong to whom the old one belongs.
pub(super) fn not_given(found: &Metadata) -> io::Error {
    let message = format!(
        "it belongs to user {} and group {}, and user {} can't give them a new file: a run has given up the \
         privilege",
        found.uid(),
        found.gid(),
        geteuid()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// An access list with a user of its own, as the kernel has it: the version, then entries of a tag, what
    /// is allowed, and an identifier (linux/posix_acl_xattr.h).
    fn access_list() -> Vec<u8> {
        let all = u32::MAX;
        let entries = [
            (1, 6, all),
            (2, 6, 1234),
            (4, 4, all),
            (0x10, 6, all),
            (0x20, 0, all),
        ];
        let entry = |(tag, allowed, who): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &allowed.to_le_bytes(), &who.to_le_bytes()].concat()
        };
        let entries = entries.into_iter().flat_map(entry);
        2u32.to_le_bytes().into_iter().chain(entries).collect()
    }

    #[test]
    fn access_list_and_attributes_stay() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list.csv");
        fs::write(&list, "old").unwrap();
        fs::set_permissions(&list, Permissions::from_mode(0o640)).unwrap();
        let set = [
            ("user.comment", b"ours".to_vec()),
            ("system.posix_acl_access", access_list()),
        ];
        for (name, value) in &set {
            xattr::set(&list, name, value).unwrap();
        }
        let (place, name) = Folder::end_of(&list).unwrap();
        let found = list.metadata().unwrap();
        let like = File::open(&list).unwrap();
        let draft = Draft::write(place, name, Some(found.clone()), like, "new").unwrap();
        assert!(draft.is_due().unwrap());
        draft.put().unwrap();
        let is_same = || {
            for (name, value) in &set {
                assert_eq!(xattr::get(&list, name).unwrap().as_ref(), Some(value), "{name}");
            }
            assert_eq!(list.metadata().unwrap().mode(), found.mode());
        };
        is_same();
        assert_eq!(fs::read_to_string(&list).unwrap(), "new");
        draft.put_back(Some("old")).unwrap();
        is_same();
        assert_eq!(fs::read_to_string(&list).unwrap(), "old");
        drop(draft);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
