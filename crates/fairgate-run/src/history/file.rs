//! The file in which the history outlives the run.
//!
//! Each minute what is new is written behind what is there. When half as much again has come, and once at the
//! start of each run, the file is made anew and takes the place of the old one: so its size is bounded, and
//! whoever reads it finds whole blocks, also after a crash. The end of the run writes what is left.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairgate_config::folder::{Folder, folder_of};

use super::saved::{Clocks, HEAD, LARGEST, Marks, Unusable, framed, read};
use super::{History, SPAN_S};

/// By how much a file may grow besides a half of its length when it was made, bytes.
const GROWTH: usize = 64 << 10;

/// What tells this start of the machine from all others (random(4)).
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Where the history of a run is kept.
pub struct HistoryFile {
    path: PathBuf,
    ends: [String; 2],
    report: Box<dyn Fn(String) + Send>,
}

/// Prints its path only.
impl std::fmt::Debug for HistoryFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("HistoryFile")
            .field(&self.path)
            .finish_non_exhaustive()
    }
}

impl HistoryFile {
    /// Returns the file at `path`, for a run between these two ends. `report` is told what is wrong with it,
    /// in sentences with place and remedy. It must not block.
    pub fn new(path: PathBuf, ends: [String; 2], report: impl Fn(String) + Send + 'static) -> HistoryFile {
        HistoryFile {
            path,
            ends,
            report: Box::new(report),
        }
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let name = self.path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let file = Folder::of(&self.path)?.open_trusted(name)?;
        let mut bytes = Vec::new();
        file.take(LARGEST as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Makes the file anew.
    fn replace(&self, content: &[u8]) -> io::Result<File> {
        let name = self.path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        Folder::open(folder_of(&self.path))?.replace(name, content)
    }

    fn report(&self, what: &str) {
        (self.report)(format!("the history in {}: {what}", self.path.display()));
    }
}

/// The file of a run, which is written.
#[derive(Debug)]
pub(super) struct Keeper {
    file: HistoryFile,
    boot: String,
    /// The file that this run has made.
    made: Option<Made>,
    /// Whether the file belongs to somebody else, and is left alone.
    is_foreign: bool,
    /// Whether the last attempt to write has failed.
    has_failed: bool,
}

#[derive(Debug)]
struct Made {
    file: File,
    length: usize,
    /// From this length on it is made anew.
    longest: usize,
    marks: Marks,
}

impl Keeper {
    /// Reads what earlier runs have left, and has the history begin with it.
    pub(super) fn begin(file: HistoryFile, history: &Mutex<History>) -> Keeper {
        // Without it, the calendar says how much time has passed.
        let boot = fs::read_to_string(BOOT).unwrap_or_default();
        let mut is_foreign = false;
        match file.read() {
            Ok(bytes) => {
                let recalled = recall(&mut lock(history), &bytes, &file.ends, &boot);
                if let Err(wrong) = recalled {
                    is_foreign = wrong == Wrong::Unusable(Unusable::Foreign);
                    file.report(&wrong.to_string());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => file.report(&format!(
                "it can't be read, and the history begins anew: {error}; have it belong to the user of the \
                 run, or remove it"
            )),
        }
        Keeper {
            file,
            boot,
            made: None,
            is_foreign,
            has_failed: false,
        }
    }

    /// Writes what is new. If it is the last time, no reading follows.
    pub(super) fn write(&mut self, history: &Mutex<History>, is_last: bool) {
        if self.is_foreign {
            return;
        }
        let clocks = Clocks::now(&self.boot);
        self.made = self.made.take().filter(|made| made.length < made.longest);
        let content = {
            let mut history = lock(history);
            if is_last {
                history.close();
            }
            history.content(&clocks, self.made.as_ref().map(|made| &made.marks))
        };
        let Some((content, marks)) = content else {
            return;
        };
        let block = framed(&content);
        let written = match self.made.take() {
            // It need not be on the disk at once: a file that ends too early is read up to there.
            Some(mut made) => made.file.write_all(&block).map(|()| Made {
                length: made.length + block.len(),
                marks,
                ..made
            }),
            None => {
                let content = [HEAD, &block].concat();
                self.file.replace(&content).map(|file| Made {
                    file,
                    length: content.len(),
                    longest: content.len() + content.len() / 2 + GROWTH,
                    marks,
                })
            }
        };
        let has_failed = std::mem::replace(&mut self.has_failed, written.is_err());
        match written {
            Ok(made) => self.made = Some(made),
            Err(_) if has_failed => {}
            Err(error) => self.file.report(&format!(
                "it can't be written, and a restart loses what is new: {error}; it is tried again each minute"
            )),
        }
    }
}

/// What is wrong with what a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Unusable(Unusable),
    /// A part of it is used.
    Partly(Unusable),
    OtherEnds(Vec<String>),
    /// The calendar shows an earlier time than when it was written.
    SetBack,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wrong::Unusable(Unusable::Foreign) => write!(
                f,
                "{}, and stays as it is: none is kept; remove it, or name another file with --history",
                Unusable::Foreign
            ),
            Wrong::Unusable(why) => {
                write!(
                    f,
                    "it can't be used, and begins anew: {why}; it is replaced within a minute"
                )
            }
            Wrong::Partly(why) => write!(
                f,
                "what is behind this place can't be used: {why}; it is replaced within a minute; if the \
                 machine was not turned off hard, check its disk"
            ),
            Wrong::OtherEnds(ends) => write!(
                f,
                "it is that of a run with {}, and begins anew; it is replaced within a minute, unless \
                 another file is named with --history",
                ends.join(" and ")
            ),
            Wrong::SetBack => write!(
                f,
                "it was written at a later time than it is now; its points are shown as if no time had \
                 passed since then; set the clock before the run is started"
            ),
        }
    }
}

/// Returns a history as a file has it, if it has points. `boot` tells this start of the machine from others.
pub(crate) fn kept(history: &History, boot: &str) -> Option<Vec<u8>> {
    let (content, _) = history.content(&Clocks::now(boot), None)?;
    Some([HEAD, &framed(&content)].concat())
}

/// Has a history begin with what a file says, if it is that of a run between these ends.
pub(crate) fn recall(
    history: &mut History,
    file: &[u8],
    ends: &[String; 2],
    boot: &str,
) -> Result<(), Wrong> {
    let (saved, unusable) = read(file);
    let Some(saved) = saved else {
        return unusable.map_or(Ok(()), |why| Err(Wrong::Unusable(why)));
    };
    let [one, other] = ends;
    let is_own = |from: &String, to: &String| (from, to) == (one, other) || (from, to) == (other, one);
    let foreign = saved
        .directions
        .iter()
        .find(|saved| !is_own(&saved.from, &saved.to));
    if let Some(foreign) = foreign {
        let ends = [&foreign.from, &foreign.to];
        return Err(Wrong::OtherEnds(
            ends.map(|end| fairgate::harmless::name(end)).into(),
        ));
    }
    let away = saved.clocks.seconds_until(&Clocks::now(boot));
    // What is older than the rings go back is nothing to begin with.
    if away.unwrap_or(0.0) < SPAN_S as f64 {
        history.begin_with(saved, away.unwrap_or(0.0));
    }
    match (unusable, away) {
        (Some(why), _) => Err(Wrong::Partly(why)),
        (None, None) => Err(Wrong::SetBack),
        (None, Some(_)) => Ok(()),
    }
}

fn lock(history: &Mutex<History>) -> MutexGuard<'_, History> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Instant;

    use super::*;
    use crate::history::rings::{Figure, KEPT};
    use crate::history::saved::{DirectionToSave, content};
    use crate::history::{Axis, CoarseAxis, DirectionHistory, Moved, Rings, Series};

    const ENDS: [&str; 2] = ["left", "right"];

    /// A history of these classes in one direction, whose readings are made without a run.
    struct Noted {
        history: Mutex<History>,
        at_s: f64,
    }

    impl Noted {
        fn new(classes: usize) -> Noted {
            let series = (0..classes).map(|class| {
                let path = class.to_string();
                (path.clone(), Series::new(path, Rings::default()))
            });
            let direction = DirectionHistory {
                from: ENDS[0].to_owned(),
                to: ENDS[1].to_owned(),
                series: series.collect(),
                ..DirectionHistory::default()
            };
            let history = History {
                directions: vec![direction],
                ..History::default()
            };
            Noted {
                history: Mutex::new(history),
                at_s: 0.0,
            }
        }

        fn go_on(&mut self, seconds: usize) {
            let mut history = lock(&self.history);
            history.taken = Some(Instant::now());
            let direction = &mut history.directions[0];
            for _ in 0..seconds {
                self.at_s += 1.0;
                direction.at_s = self.at_s;
                let ended = direction.axis.advance(self.at_s);
                let moved = Moved {
                    seconds: 1.0,
                    bytes: self.at_s as u64,
                    ..Moved::default()
                };
                for series in direction.series.values_mut() {
                    series.rings.add(Some(&moved), &ended);
                }
            }
        }
    }

    fn keeper(path: &Path, history: &Mutex<History>) -> (Keeper, Receiver<String>) {
        let (told, reports) = channel();
        let report = move |what| told.send(what).unwrap();
        let file = HistoryFile::new(path.to_owned(), ENDS.map(str::to_owned), report);
        (Keeper::begin(file, history), reports)
    }

    /// For days, the file grows and is made anew, and says what the rings have.
    #[test]
    fn the_file_is_bounded_and_has_everything() {
        const MINUTES: u32 = 3 * 24 * 60;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.history");
        let mut noted = Noted::new(3);
        let (mut keeper, reports) = keeper(&path, &noted.history);
        let (mut files, mut longest) = (BTreeSet::new(), 0);
        // Nothing is written before there are points.
        keeper.write(&noted.history, false);
        assert!(!path.exists());
        for minute in 1..=MINUTES {
            noted.go_on(60);
            keeper.write(&noted.history, minute == MINUTES);
            let found = path.metadata().unwrap();
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
            longest = longest.max(found.len());
            files.insert(found.ino());
        }
        let of_classes = 3 * (1440 + 720) * 28;
        assert!(longest < of_classes * 3 / 2 + 120_000, "{longest}");
        assert!(files.len() > 1);
        assert_eq!(reports.try_iter().next(), None);

        let (saved, unusable) = read(&fs::read(&path).unwrap());
        let (saved, history) = (saved.unwrap(), lock(&noted.history));
        assert_eq!(unusable, None);
        let direction = &history.directions[0];
        for tier in KEPT {
            let times = direction.axis.times(tier, f64::MIN);
            assert_eq!(saved.directions[0].axis.times(tier, f64::MIN), times);
            for (class, series) in &direction.series {
                let rates = |rings: &Rings| rings.last(tier, times.len(), Figure::Rate);
                assert_eq!(rates(&saved.directions[0].series[class]), rates(&series.rings));
            }
        }
    }

    /// What can't be written is told once, and written when it can be.
    #[test]
    fn a_failure_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/run.history");
        let mut noted = Noted::new(1);
        let (mut keeper, reports) = keeper(&path, &noted.history);
        for _ in 0..3 {
            noted.go_on(60);
            keeper.write(&noted.history, false);
        }
        let told: Vec<String> = reports.try_iter().collect();
        let what = "missing/run.history: it can't be written";
        assert!(told.len() == 1 && told[0].contains(what), "{told:?}");
        fs::create_dir(path.parent().unwrap()).unwrap();
        keeper.write(&noted.history, false);
        assert!(path.exists() && reports.try_iter().next().is_none());
    }

    /// The file of a run with other interfaces, one that others may write to, and what is no history at all.
    #[test]
    fn what_is_not_its_own_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.history");
        let mut noted = Noted::new(1);
        let mut axis = Axis::default();
        axis.extend(1, &[1.0, 2.0]);
        let direction = DirectionToSave {
            from: "left",
            to: "eth7",
            axis: &axis,
            series: Vec::new(),
            coarse_axis: &CoarseAxis::default(),
            coarse: Vec::new(),
        };
        let (content, _) = content(3.0, &Clocks::now(""), &[direction], None);
        let of_others = [HEAD, &framed(&content)].concat();
        let mut told = |content: &[u8], mode: u32| {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let (mut keeper, reports) = keeper(&path, &noted.history);
            assert!(lock(&noted.history).recalled.is_none());
            noted.go_on(10);
            keeper.write(&noted.history, false);
            let is_replaced = fs::read(&path).unwrap() != content;
            let told: Vec<String> = reports.try_iter().collect();
            assert_eq!(told.len(), 1, "{told:?}");
            (told[0].clone(), is_replaced)
        };
        let (what, is_replaced) = told(&of_others, 0o600);
        assert!(
            what.contains("that of a run with left and eth7") && is_replaced,
            "{what}"
        );
        let (what, is_replaced) = told(&of_others, 0o666);
        assert!(
            what.contains("only this user and root may write to") && is_replaced,
            "{what}"
        );
        let (what, is_replaced) = told(b"precious", 0o600);
        assert!(what.contains("stays as it is") && !is_replaced, "{what}");
        let (what, is_replaced) = told(b"", 0o600);
        assert!(what.contains("byte 0: it ends here") && is_replaced, "{what}");
    }
}
