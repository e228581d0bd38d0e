//! The state of the screen, and what keys and readings do to it. No clock, no socket, no terminal.

use std::collections::HashSet;
use std::sync::Arc;

use fairgate_run_api::{FlowOrder, FlowsStatus, Interval, SHARDED, Status, ValueStatus};

use crate::top::dialog::{Answered, Dialog, Order, Step};
use crate::top::key::Key;
use crate::top::layout;
use crate::top::listing::{self, Line, Rules, Shape, Sort};
use crate::top::outline::Trees;
use crate::top::tree::Tree;

/// What the screen shows at first.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The direction, by the interface that it receives from. Without it, the first that has a tree.
    pub from: Option<String>,
    /// The order of classes.
    pub sort: Sort,
    /// Only classes with this in their names are shown.
    pub filter: String,
    /// Whether colours are used.
    pub colour: bool,
    /// The options by which the user named the run, each with a space before it. They are part of the
    /// commands that the screen shows.
    pub options: String,
}

/// What happens to the screen.
#[derive(Clone, Debug)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// The terminal has so many columns and lines.
    Size(u16, u16),
    /// The run has said what its classes did.
    Interval(Interval),
    /// The run has said what it is, and what it did since its start.
    Status(Box<Status>),
    /// The description of the trees was read.
    Trees(Trees),
    /// The run has said what its flows do.
    Flows(Box<FlowsStatus>),
    /// The run does not answer, and why.
    Lost(String),
    /// The run has answered to a change.
    Answered(Answered),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// End.
    Quit,
    /// Have the run change its trees, and say what it answers.
    Change(Order),
    /// Read the status again now: the trees have changed.
    Reread,
    /// Read the flows in this order from now on, or do not read them any more.
    Flows(Option<FlowOrder>),
}

/// How many places a tree has at most to be shown as a whole. In larger ones, places that no packet has come
/// to are left out at first.
const WHOLE: usize = 500;

/// For how many intervals the screen says that the run was started again.
const NOTICED: u64 = 5;

/// The state of the screen.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) colour: bool,
    pub(crate) options: String,
    pub(crate) size: (u16, u16),
    live: Data,
    /// What was shown when the screen was paused.
    frozen: Option<Box<Data>>,
    /// The direction that was asked for by name.
    wanted: Option<String>,
    /// Whether the first direction is chosen.
    is_chosen: bool,
    pub(crate) side: usize,
    pub(crate) shape: Shape,
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    /// Whether the filter is being written.
    pub(crate) is_filtering: bool,
    /// `None` until the user says so.
    only_used: Option<bool>,
    pub(crate) shows_help: bool,
    pub(crate) dialog: Option<Dialog>,
    /// The flows are shown instead of the classes.
    pub(crate) flows: Option<FlowList>,
    sides: [Side; 2],
}

/// Which flows are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowList {
    pub(crate) order: FlowOrder,
    /// The first one on the screen.
    pub(crate) top: usize,
}

/// What the screen knows of the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pub(crate) trees: [Tree; 2],
    /// The number of intervals.
    tick: u64,
    /// The end of the last interval, in seconds since the start of the run.
    pub(crate) at_s: f64,
    /// Packets whose delay was not counted in the last interval.
    pub(crate) missed: u64,
    pub(crate) status: Option<Box<Status>>,
    pub(crate) flows: Option<Box<FlowsStatus>>,
    descriptions: Trees,
    /// The number of workers that the trees are shown for.
    workers: [usize; 2],
    pub(crate) link: Link,
}

/// Whether the run answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// Nothing was heard yet.
    #[default]
    Waiting,
    /// It answers.
    Live,
    /// It answers again, after its end.
    Restarted,
    /// It does not answer, and why.
    Lost(String),
}

/// What is shown of a direction.
#[derive(Clone, Debug, Default)]
struct Side {
    collapsed: HashSet<Arc<str>>,
    lines: Vec<Line>,
    /// The path of the selected place, and its line.
    key: Arc<str>,
    selected: usize,
    /// The first line on the screen.
    top: usize,
}

impl Model {
    /// Returns the screen before anything is known of the run.
    pub fn new(start: Start) -> Model {
        let mut model = Model {
            colour: start.colour,
            options: start.options,
            size: (80, 24),
            live: Data::default(),
            frozen: None,
            wanted: start.from,
            is_chosen: false,
            side: 0,
            shape: Shape::default(),
            sort: start.sort,
            filter: start.filter,
            is_filtering: false,
            only_used: None,
            shows_help: false,
            dialog: None,
            flows: None,
            sides: Default::default(),
        };
        model.list();
        model
    }

    /// Takes an event. Returns what is to be done.
    pub fn update(&mut self, event: Event) -> Option<Action> {
        let action = match event {
            Event::Key(key) => self.press(key),
            Event::Size(columns, lines) => {
                self.size = (columns, lines);
                None
            }
            Event::Interval(interval) => {
                self.live.take_interval(&interval);
                None
            }
            Event::Status(status) => {
                self.live.take_status(status);
                self.choose_first();
                None
            }
            Event::Trees(trees) => {
                self.live.take_trees(trees);
                None
            }
            Event::Flows(flows) => {
                self.live.flows = Some(flows);
                None
            }
            Event::Lost(why) => {
                self.live.link = Link::Lost(why);
                None
            }
            Event::Answered(answered) => self.answered(answered),
        };
        self.list();
        action
    }

    /// Returns the number of lines that are listed, also those that the screen has no room for.
    pub fn line_count(&self) -> usize {
        self.lines().len()
    }

    /// Returns which of them is selected. Only an empty list has none.
    pub fn selected_line(&self) -> Option<usize> {
        self.selected_place().map(|_| self.selected())
    }

    /// Returns whether help, a dialog or the flows are shown instead of the lines.
    pub fn is_covered(&self) -> bool {
        self.shows_help || self.dialog.is_some() || self.flows.is_some()
    }

    fn press(&mut self, key: Key) -> Option<Action> {
        if key == Key::Interrupt {
            return Some(Action::Quit);
        }
        if let Some(dialog) = self.dialog.take() {
            match dialog.press(key) {
                Step::Stay(dialog) => self.dialog = Some(dialog),
                Step::Close => {}
                Step::Send(order) => {
                    self.dialog = Some(Dialog::Sent(order.clone()));
                    return Some(Action::Change(order));
                }
            }
            return None;
        }
        if self.shows_help {
            self.shows_help = false;
            return None;
        }
        if self.is_filtering {
            self.write_filter(key);
            return None;
        }
        if let Some(list) = self.flows {
            return self.press_in_flows(key, list);
        }
        let page = self.lines_on_screen().max(1);
        match key {
            Key::Char('q') => return Some(Action::Quit),
            Key::Char('?' | 'h') => self.shows_help = true,
            Key::Char('/') => self.is_filtering = true,
            Key::Esc => self.filter.clear(),
            Key::Tab => self.side = 1 - self.side,
            Key::Char('s') => self.sort = self.sort.further(1),
            Key::Char('S') => self.sort = self.sort.further(Sort::ALL.len() - 1),
            Key::Char('v') => self.shape = self.shape.next(),
            Key::Char('u') => self.only_used = Some(!self.only_used()),
            Key::Char('p' | ' ') => self.pause(),
            Key::Char('f') => return self.show_flows(Some(FlowList::default())),
            Key::Char('r') => self.open_dialog(),
            Key::Up | Key::Char('k') => self.select(self.selected().saturating_sub(1)),
            Key::Down | Key::Char('j') => self.select(self.selected().saturating_add(1)),
            Key::PageUp => self.select(self.selected().saturating_sub(page)),
            Key::PageDown => self.select(self.selected().saturating_add(page)),
            Key::Home => self.select(0),
            Key::End => self.select(usize::MAX),
            Key::Enter => self.turn(),
            Key::Right | Key::Char('+') => self.descend(),
            Key::Left | Key::Char('-') => self.ascend(),
            _ => {}
        }
        None
    }

    /// Shows the flows, or the classes again.
    fn show_flows(&mut self, list: Option<FlowList>) -> Option<Action> {
        self.flows = list;
        // Those of the last time are old.
        if list.is_none() {
            self.live.flows = None;
        }
        Some(Action::Flows(list.map(|list| list.order)))
    }

    fn press_in_flows(&mut self, key: Key, list: FlowList) -> Option<Action> {
        let page = layout::lines_of_flows(self.size.0, self.size.1).max(1);
        let count = self.data().flows.as_ref().map_or(0, |flows| flows.flows.len());
        let last = count.saturating_sub(page);
        let sorted = |further: usize| {
            let all = FlowOrder::ALL;
            let at = all.iter().position(|order| *order == list.order).unwrap_or(0);
            let order = all[(at + further) % all.len()];
            Some(FlowList { order, top: 0 })
        };
        let top = match key {
            Key::Char('q') => return Some(Action::Quit),
            Key::Char('f') | Key::Esc => return self.show_flows(None),
            Key::Char('s') => return self.show_flows(sorted(1)),
            Key::Char('S') => return self.show_flows(sorted(FlowOrder::ALL.len() - 1)),
            Key::Char('?' | 'h') => {
                self.shows_help = true;
                return None;
            }
            Key::Char('p' | ' ') => {
                self.pause();
                return None;
            }
            Key::Up | Key::Char('k') => list.top.saturating_sub(1),
            Key::Down | Key::Char('j') => list.top + 1,
            Key::PageUp => list.top.saturating_sub(page),
            Key::PageDown => list.top + page,
            Key::Home => 0,
            Key::End => last,
            _ => list.top,
        };
        self.flows = Some(FlowList {
            top: top.min(last),
            ..list
        });
        None
    }

    fn write_filter(&mut self, key: Key) {
        match key {
            Key::Enter | Key::Up | Key::Down => self.is_filtering = false,
            Key::Esc => {
                self.is_filtering = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(letter) if !letter.is_control() => {
                self.filter.push(letter);
                self.list();
                self.select_match();
            }
            _ => {}
        }
    }

    /// Selects the first line that matches the filter. The lines before it are those above it in the tree.
    fn select_match(&mut self) {
        let filter = self.filter.to_lowercase();
        let tree = &self.data().trees[self.side];
        let is_match = |line: &Line| listing::fits(tree, line.index, &filter);
        if let Some(line) = self.lines().iter().position(is_match) {
            self.select(line);
        }
    }

    fn pause(&mut self) {
        self.frozen = match self.frozen {
            Some(_) => None,
            None => Some(Box::new(self.live.clone())),
        };
    }

    fn open_dialog(&mut self) {
        let data = self.data();
        let rates = match self.selected_place() {
            Some(index) => data.trees[self.side].rates(index).to_vec(),
            None => Vec::new(),
        };
        let revision = data.status.as_ref().map(|_| data.descriptions.revision);
        self.dialog = Some(Dialog::open(&self.from(), revision, &rates));
    }

    fn answered(&mut self, answered: Answered) -> Option<Action> {
        if let Some(Dialog::Sent(order)) = &self.dialog {
            self.dialog = Some(Dialog::Answer(order.clone(), answered));
        }
        Some(Action::Reread)
    }

    /// Opens or closes what is below the selected place. A place of a list is shown in the tree.
    fn turn(&mut self) {
        let key = self.selected_key();
        if self.shape != Shape::Tree {
            self.show_in_tree(&key);
            return;
        }
        let collapsed = &mut self.sides[self.side].collapsed;
        if !collapsed.remove(&key) {
            collapsed.insert(key);
        }
    }

    fn show_in_tree(&mut self, key: &str) {
        self.shape = Shape::Tree;
        let data = self.frozen.as_deref().unwrap_or(&self.live);
        let tree = &data.trees[self.side];
        let collapsed = &mut self.sides[self.side].collapsed;
        let mut above = tree.find(key).and_then(|index| tree.node(index).parent);
        while let Some(index) = above {
            collapsed.remove(&tree.node(index).key);
            above = tree.node(index).parent;
        }
    }

    /// Opens the selected place, or goes to the first one below it.
    fn descend(&mut self) {
        let key = self.selected_key();
        let side = &mut self.sides[self.side];
        if !side.collapsed.remove(&key) {
            let depth = |line: Option<&Line>| line.map(|line| line.depth);
            let selected = side.selected;
            if depth(side.lines.get(selected + 1)) > depth(side.lines.get(selected)) {
                self.select(selected + 1);
            }
        }
    }

    /// Closes the selected place, or goes to the one above it.
    fn ascend(&mut self) {
        let Some(index) = self.selected_place() else {
            return;
        };
        let node = self.data().trees[self.side].node(index);
        let (key, parent) = (Arc::clone(&node.key), node.parent);
        let is_open = !node.children.is_empty() && !self.sides[self.side].collapsed.contains(&key);
        if is_open && self.shape == Shape::Tree && self.filter.is_empty() {
            self.sides[self.side].collapsed.insert(key);
        } else if let Some(parent) = parent
            && let Some(line) = self.lines().iter().position(|line| line.index == parent)
        {
            self.select(line);
        }
    }

    fn select(&mut self, line: usize) {
        let last = self.lines().len().saturating_sub(1);
        let side = &mut self.sides[self.side];
        side.selected = line.min(last);
        if let Some(line) = side.lines.get(side.selected) {
            let data = self.frozen.as_deref().unwrap_or(&self.live);
            side.key = Arc::clone(&data.trees[self.side].node(line.index).key);
        }
    }

    /// Makes the lines again, and keeps the selected place: if it has gone, the one above it that is there,
    /// or the line where it was.
    fn list(&mut self) {
        let data = self.frozen.as_deref().unwrap_or(&self.live);
        let tree = &data.trees[self.side];
        let lines = self.lines_of(self.side);
        let side = &mut self.sides[self.side];
        let line_of = |key: &str| {
            let index = tree.find(key)?;
            lines.iter().position(|line| line.index == index)
        };
        let mut at = line_of(&side.key);
        let mut above = tree.find(&side.key).and_then(|index| tree.node(index).parent);
        while at.is_none()
            && self.shape == Shape::Tree
            && let Some(index) = above
        {
            at = line_of(&tree.node(index).key);
            above = tree.node(index).parent;
        }
        let selected = at.unwrap_or(side.selected).min(lines.len().saturating_sub(1));
        if let Some(line) = lines.get(selected) {
            side.key = Arc::clone(&tree.node(line.index).key);
        }
        (side.lines, side.selected) = (lines, selected);
        let page = self.lines_on_screen().max(1);
        let side = &mut self.sides[self.side];
        let last = side.lines.len().saturating_sub(page);
        let least = side.selected.saturating_sub(page - 1);
        side.top = side.top.clamp(least, side.selected.max(least)).min(last);
    }

    /// Chooses the direction that is shown at first: the wanted one, else the first that has a tree.
    fn choose_first(&mut self) {
        let Some(status) = &self.live.status else { return };
        if std::mem::replace(&mut self.is_chosen, true) {
            return;
        }
        let side = status.directions.iter().position(|direction| match &self.wanted {
            Some(wanted) => direction.from == *wanted,
            None => direction.tree.discipline != "fifo",
        });
        self.side = side.map_or(self.side, |side| side.min(1));
    }

    fn lines_on_screen(&self) -> usize {
        layout::lines_of_classes(self.size.0, self.size.1)
    }

    /// What is shown.
    pub(crate) fn data(&self) -> &Data {
        self.frozen.as_deref().unwrap_or(&self.live)
    }

    /// Whether the run answers, also while the screen is paused.
    pub(crate) fn link(&self) -> &Link {
        &self.live.link
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    pub(crate) fn only_used(&self) -> bool {
        self.leaves_out_unused(self.side)
    }

    fn leaves_out_unused(&self, side: usize) -> bool {
        let size = self.data().trees[side].nodes().len();
        self.only_used.unwrap_or(size > WHOLE)
    }

    /// The interface that the shown direction receives from.
    fn from(&self) -> String {
        let status = self.data().status.as_ref();
        let direction = status.and_then(|status| status.directions.get(self.side));
        direction
            .map(|direction| direction.from.clone())
            .unwrap_or_default()
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.sides[self.side].lines
    }

    pub(crate) fn selected(&self) -> usize {
        self.sides[self.side].selected
    }

    pub(crate) fn top(&self) -> usize {
        self.sides[self.side].top
    }

    pub(crate) fn is_collapsed(&self, key: &str) -> bool {
        self.sides[self.side].collapsed.contains(key)
    }

    /// Returns the selected place.
    pub(crate) fn selected_place(&self) -> Option<usize> {
        self.lines().get(self.selected()).map(|line| line.index)
    }

    fn selected_key(&self) -> Arc<str> {
        Arc::clone(&self.sides[self.side].key)
    }

    /// Returns the lines of a direction, whether it is shown or not.
    pub(crate) fn lines_of(&self, side: usize) -> Vec<Line> {
        let filter = self.filter.to_lowercase();
        let tree = &self.data().trees[side];
        listing::lines(
            tree,
            &Rules {
                shape: self.shape,
                sort: self.sort,
                filter: &filter,
                only_used: self.leaves_out_unused(side),
                collapsed: &self.sides[side].collapsed,
            },
        )
    }
}

impl Data {
    fn take_interval(&mut self, interval: &Interval) {
        if interval.at_s < self.at_s {
            self.forget(Link::Restarted);
        } else {
            self.link = match self.link {
                Link::Lost(_) => Link::Restarted,
                // Long enough to be seen.
                Link::Restarted if self.tick < NOTICED => Link::Restarted,
                _ => Link::Live,
            };
        }
        self.at_s = interval.at_s;
        self.missed = interval.missed_delays;
        // The first reading of a recording has none.
        if interval.rows.is_empty() {
            return;
        }
        self.tick += 1;
        let first = match &self.status {
            Some(status) => status.directions.first().map(|direction| direction.from.as_str()),
            // The rows of the first direction come first.
            None => interval.rows.first().map(|row| row.from.as_str()),
        };
        for (side, tree) in self.trees.iter_mut().enumerate() {
            let is_of = |from: &str| (Some(from) == first) == (side == 0);
            tree.take(self.tick, interval.rows.iter().filter(|row| is_of(&row.from)));
        }
    }

    fn take_status(&mut self, status: Box<Status>) {
        let is_other = |before: &Status| before.pid != status.pid || before.uptime_s > status.uptime_s;
        if self.status.as_deref().is_some_and(is_other) {
            self.forget(Link::Restarted);
        }
        let workers = |side: usize| {
            let root = &status.directions.get(side)?.tree;
            match root.variables.get("shards") {
                Some(ValueStatus::Integer(count)) if root.discipline == SHARDED => {
                    usize::try_from(*count).ok()
                }
                _ => None,
            }
        };
        let workers = [workers(0).unwrap_or(0), workers(1).unwrap_or(0)];
        if workers != self.workers {
            self.workers = workers;
            self.reshape();
        }
        for (tree, direction) in self.trees.iter_mut().zip(&status.directions) {
            tree.take_status(&direction.tree);
        }
        self.status = Some(status);
    }

    fn take_trees(&mut self, trees: Trees) {
        self.descriptions = trees;
        self.reshape();
    }

    fn reshape(&mut self) {
        for (side, tree) in self.trees.iter_mut().enumerate() {
            let description = self.descriptions.directions.get(side).cloned().flatten();
            let outline = description.unwrap_or_default();
            let outline = match self.workers[side] {
                0 => outline,
                workers => outline.of_workers(workers, SHARDED),
            };
            tree.reshape(Arc::new(outline));
        }
    }

    /// Forgets a run that has ended.
    fn forget(&mut self, link: Link) {
        *self = Data {
            link,
            ..Data::default()
        };
    }

    /// Whether a description could not be read.
    pub(crate) fn is_unknown(&self, side: usize) -> bool {
        matches!(self.descriptions.directions.get(side), Some(None))
    }
}
