//! A browser that loads pages over several connections.
//!
//! A page is a document, and objects that the browser finds in it. It fetches one object at a time on each
//! connection, as browsers do with HTTP/1.1. Connections stay open from page to page. A new one is opened if
//! all others are busy and the limit is not reached.

use std::ops::Range;
use std::sync::Arc;

use fairgate::Time;

use crate::monitor::{ConnectionMonitor, Recorder};
use crate::random::Stream;
use crate::results::{ApplicationResults, Durations};
use crate::scenario::Web;
use crate::tcp::Config;
use crate::traffic::program::Exchange;
use crate::traffic::{Connection, End, Program};

/// The state of a browser.
pub(crate) struct Browser {
    web: Arc<Web>,
    config: Config,
    stream: Stream,
    window: Range<Time>,
    pub(crate) connections: Vec<Connection>,
    /// When the program of each connection wants a turn.
    due: Vec<Option<Time>>,
    is_busy: Vec<bool>,
    page: Page,
    /// The pages that were not begun yet.
    left: u64,
    /// When the next event for a turn is, if there is one.
    scheduled: Option<Time>,
    load_times: Recorder,
    object_times: Recorder,
    /// Its transfers are the pages.
    pub(crate) monitor: ConnectionMonitor,
    stopped: bool,
}

#[derive(Clone, Copy, Debug)]
enum Page {
    /// The next page is requested at this time.
    Thinking(Time),
    /// The document is under way. The page was requested at this time.
    Document(Time),
    /// Objects of the page: when it was requested, how many were not requested yet, and how many are under
    /// way.
    Objects {
        began: Time,
        to_request: u64,
        under_way: u64,
    },
    /// All pages were loaded.
    Done,
}

impl Browser {
    pub(crate) fn new(
        web: Arc<Web>,
        config: Config,
        stream: Stream,
        start: Time,
        window: Range<Time>,
    ) -> Browser {
        Browser {
            left: web.pages.unwrap_or(u64::MAX),
            web,
            config,
            stream,
            window,
            connections: Vec::new(),
            due: Vec::new(),
            is_busy: Vec::new(),
            page: Page::Thinking(start),
            scheduled: None,
            load_times: Recorder::new(),
            object_times: Recorder::new(),
            monitor: ConnectionMonitor::new(),
            stopped: false,
        }
    }

    /// Does what is due: requests pages and objects, and lets the ends of connections write.
    pub(crate) fn turn(&mut self, now: Time) {
        if self.scheduled == Some(now) {
            self.scheduled = None;
        }
        if self.stopped {
            return;
        }
        if let Page::Thinking(at) = self.page
            && at <= now
        {
            self.begin_page(now);
        }
        for number in 0..self.connections.len() {
            // A turn at once may follow the first one, which only opens the connection.
            while self.due[number].is_some_and(|at| at <= now) {
                self.due[number] = self.connections[number].turn(now).1;
            }
        }
    }

    /// Returns the time of the next turn, if an event has to be scheduled for it.
    pub(crate) fn next_turn(&mut self, now: Time) -> Option<Time> {
        let page = match self.page {
            Page::Thinking(at) => Some(at),
            _ => None,
        };
        let next = self.due.iter().copied().chain([page]).flatten().min()?.max(now);
        if self.stopped || self.scheduled.is_some_and(|at| at <= next) {
            return None;
        }
        self.scheduled = Some(next);
        Some(next)
    }

    /// Takes the data that has arrived at an end of a connection. Returns its bytes.
    pub(crate) fn take_delivered(&mut self, number: usize, end: End, now: Time) -> u64 {
        let (bytes, due) = self.connections[number].take_delivered(end, now);
        if due.is_some() {
            self.due[number] = due;
        }
        let exchange = self.connections[number].program_mut().exchange_mut();
        if let Some(duration) = exchange.take_fetched() {
            self.is_busy[number] = false;
            if self.window.contains(&now) {
                self.object_times.record(duration);
            }
            self.object_arrived(now);
        }
        bytes
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.connections.iter_mut().for_each(Connection::stop);
    }

    pub(crate) fn results(&self) -> ApplicationResults {
        ApplicationResults::Pages {
            loaded: self.load_times.count(),
            load_time: Durations::of(&self.load_times),
            object_time: Durations::of(&self.object_times),
        }
    }

    /// Returns whether all pages were loaded.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.page, Page::Done)
    }

    fn begin_page(&mut self, now: Time) {
        let Some(left) = self.left.checked_sub(1) else {
            self.page = Page::Done;
            return;
        };
        self.left = left;
        self.page = Page::Document(now);
        let size = self.web.document.sample(&mut self.stream);
        self.fetch(size, now);
    }

    fn object_arrived(&mut self, now: Time) {
        let (began, to_request, under_way) = match self.page {
            Page::Document(began) => (began, self.web.objects.sample(&mut self.stream), 0),
            Page::Objects {
                began,
                to_request,
                under_way,
            } => (began, to_request, under_way - 1),
            Page::Thinking(_) | Page::Done => unreachable!("objects arrive while a page is loaded"),
        };
        let limit = u64::from(self.web.connections);
        let begun = to_request.min(limit - under_way);
        for _ in 0..begun {
            let size = self.web.size.sample(&mut self.stream);
            self.fetch(size, now);
        }
        self.page = Page::Objects {
            began,
            to_request: to_request - begun,
            under_way: under_way + begun,
        };
        if under_way + begun == 0 {
            self.page_loaded(now - began, now);
        }
    }

    fn page_loaded(&mut self, duration: u64, now: Time) {
        self.monitor.transfers.record(duration);
        if self.window.contains(&now) {
            self.load_times.record(duration);
        }
        let think = self.web.think.sample(&mut self.stream);
        self.page = match self.left {
            0 => Page::Done,
            _ => Page::Thinking(now + think),
        };
    }

    /// Fetches an object on an idle connection, or on a new one. There is one, because at most as many
    /// objects are under way as there may be connections.
    fn fetch(&mut self, size: u64, now: Time) {
        let request = self.web.request.sample(&mut self.stream).max(1);
        let service = self.web.service.sample(&mut self.stream);
        let number = match self.is_busy.iter().position(|&is_busy| !is_busy) {
            Some(number) => number,
            None => {
                let program = Program::Exchange(Box::new(Exchange::fetches(now)));
                self.connections.push(Connection::new(&self.config, program, now));
                self.due.push(None);
                self.is_busy.push(false);
                self.connections.len() - 1
            }
        };
        self.is_busy[number] = true;
        let exchange = self.connections[number].program_mut().exchange_mut();
        exchange.fetch(request, size.max(1), service, now);
        // The request is written at once. It opens a new connection.
        self.due[number] = self.connections[number].turn(now).1;
    }
}
