//! Where the parts of the screen are, and how many lines they have.

use ratatui::layout::Rect;

/// Screens of at least this width have the details beside the classes.
pub(crate) const WIDE: u16 = 120;

/// Where the parts of the screen are. Parts that have no room are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Areas {
    pub(crate) head: Rect,
    pub(crate) table: Rect,
    pub(crate) details: Rect,
    pub(crate) foot: Rect,
}

impl Areas {
    pub(crate) fn of(area: Rect) -> Areas {
        let height = area.height;
        let head = match height {
            0..=2 => 0,
            3..=9 => 1,
            _ => 3,
        };
        let foot = u16::from(height >= 5);
        let middle = Rect {
            y: area.y + head,
            height: height - head - foot,
            ..area
        };
        let (table, details) = beside_or_below(middle);
        Areas {
            head: Rect { height: head, ..area },
            table,
            details,
            foot: Rect {
                y: area.y + height - foot,
                height: foot,
                ..area
            },
        }
    }

    /// What is between head and foot.
    pub(crate) fn middle(&self) -> Rect {
        match self.details.is_empty() {
            true => self.table,
            false => self.table.union(self.details),
        }
    }
}

/// Divides an area between the classes and the details of one.
fn beside_or_below(area: Rect) -> (Rect, Rect) {
    let none = Rect { height: 0, ..area };
    if area.width >= WIDE && area.height >= 6 {
        let width = (area.width / 3).clamp(44, 72);
        let table = Rect {
            width: area.width - width,
            ..area
        };
        let details = Rect {
            x: area.x + table.width,
            width,
            ..area
        };
        return (table, details);
    }
    let below = match area.height {
        _ if area.width < 40 => 0,
        0..=11 => 0,
        12..=15 => 4,
        16..=27 => 8,
        more => (more / 3).clamp(9, 14),
    };
    if below == 0 {
        return (area, none);
    }
    let table = Rect {
        height: area.height - below,
        ..area
    };
    let details = Rect {
        y: area.y + table.height,
        height: below,
        ..area
    };
    (table, details)
}

/// Returns how many lines of a list an area has room for: the first line of a higher one is its head.
pub(crate) fn room(area: Rect) -> u16 {
    match area.height {
        0..=2 => area.height,
        more => more - 1,
    }
}

/// Returns how many lines a screen of this size has for classes.
pub(crate) fn lines_of_classes(width: u16, height: u16) -> usize {
    usize::from(room(Areas::of(Rect::new(0, 0, width, height)).table))
}

/// Returns how many lines a screen of this size has for flows.
pub(crate) fn lines_of_flows(width: u16, height: u16) -> usize {
    usize::from(room(Areas::of(Rect::new(0, 0, width, height)).middle()))
}
