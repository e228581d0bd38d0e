//! Tables in reserve, for disciplines that make theirs when their first packet comes.
//!
//! A tree with a class for each of thousands of subscribers has as many tables of flows, and most are never
//! used. So a discipline may begin [without a table](crate::registry::Tables::WhenUsed), and takes one from
//! the reserve of the pool that its first packet is in. Thus the packet path allocates nothing: the driver
//! [refills](super::Pool::refill) the reserve between its turns, by what the last turn has taken.
//!
//! Invariant: a shelf has [`SPARE`] tables after a refill. If a turn takes more than that from one shelf, or
//! a table of a kind that was not announced, it is made at once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::{Any, TypeId};
use core::fmt;

/// The tables of a kind that are in reserve: as many as a driver may enqueue packets between two refills.
pub(crate) const SPARE: usize = 128;

/// The table of a discipline, of any size.
pub trait Table: Send + Sync + 'static {
    /// Makes an empty one.
    fn of_size(size: u32) -> Self;
}

/// Tables of one type and size.
#[derive(Clone, Copy)]
pub struct TableKind {
    of: TypeId,
    size: u32,
    shelf: fn(u32) -> Box<dyn Shelf>,
}

impl TableKind {
    /// Returns the kind of the tables `T` of this size.
    pub fn of<T: Table>(size: u32) -> TableKind {
        TableKind {
            of: TypeId::of::<T>(),
            size,
            shelf: |size| {
                Box::new(Spare::<T> {
                    size,
                    tables: Vec::new(),
                })
            },
        }
    }
}

impl PartialEq for TableKind {
    fn eq(&self, other: &TableKind) -> bool {
        (self.of, self.size) == (other.of, other.size)
    }
}

impl Eq for TableKind {}

impl fmt::Debug for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableKind({})", self.size)
    }
}

/// The tables of a kind, whatever their type is.
trait Shelf: Send + Sync {
    fn fill(&mut self);
    /// The vector of tables.
    fn tables(&mut self) -> &mut dyn Any;
}

struct Spare<T> {
    size: u32,
    tables: Vec<T>,
}

impl<T: Table> Shelf for Spare<T> {
    fn fill(&mut self) {
        let size = self.size;
        self.tables
            .resize_with(SPARE.max(self.tables.len()), || T::of_size(size));
    }

    fn tables(&mut self) -> &mut dyn Any {
        &mut self.tables
    }
}

/// The reserve of a pool.
#[derive(Default)]
pub(super) struct Reserve {
    shelves: Vec<(TableKind, Box<dyn Shelf>)>,
    /// Whether tables were taken since the last refill.
    pub(super) is_used: bool,
}

impl Reserve {
    /// Has tables of this kind from now on.
    pub(super) fn provide(&mut self, kind: TableKind) {
        if !self.shelves.iter().any(|(known, _)| *known == kind) {
            let mut shelf = (kind.shelf)(kind.size);
            shelf.fill();
            self.shelves.push((kind, shelf));
        }
    }

    pub(super) fn take<T: Table>(&mut self, size: u32) -> T {
        self.is_used = true;
        let kind = TableKind::of::<T>(size);
        let shelf = self.shelves.iter_mut().find(|(known, _)| *known == kind);
        shelf
            .and_then(|(_, shelf)| shelf.tables().downcast_mut::<Vec<T>>()?.pop())
            .unwrap_or_else(|| T::of_size(size))
    }

    pub(super) fn refill(&mut self) {
        self.is_used = false;
        for (_, shelf) in &mut self.shelves {
            shelf.fill();
        }
    }
}

impl fmt::Debug for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.shelves.iter().map(|(kind, _)| kind))
            .finish()
    }
}
