//! The terminal: its modes, keys, signals, and the loop that draws.
//!
//! The modes are restored on every way out: a key, a signal, an error, a panic of any thread.

use std::io::{self, IsTerminal, Stdout, stdin, stdout};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fairgate_run_api::FlowOrder;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::top::dialog::Order;
use crate::top::error::TopError;
use crate::top::key::Key;
use crate::top::model::{Action, Event, Model};
use crate::top::reader::{self, News};
use crate::top::view;
use crate::top::{Changer, Settings};

/// The shortest time between two drawings, unless a key was pressed.
const FRAME: Duration = Duration::from_millis(50);

/// How often the thread that reads keys looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(100);

/// Returns whether a screen can be shown, and keys can be read.
pub fn is_there() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Shows the screen until the user ends it.
pub(crate) fn run(settings: &Settings, change: Changer) -> Result<(), TopError> {
    if !is_there() {
        return Err(TopError::NoTerminal);
    }
    let (news, heard) = mpsc::channel();
    let (wake, woken) = mpsc::channel();
    let (want_flows, wanted_flows) = mpsc::channel();
    let signals = on_signals(&news).map_err(TopError::Terminal)?;
    let session = Session::enter().map_err(TopError::Terminal)?;
    let keys = Keys::read(news.clone());
    let readers = settings.clone();
    spawn(&news, move |news| {
        reader::follow(&readers.run, readers.interval, &news)
    });
    let readers = settings.clone();
    spawn(&news, move |news| {
        reader::inquire(&readers.run, readers.interval, &readers.registry, &news, &woken);
    });
    let readers = settings.clone();
    spawn(&news, move |news| {
        reader::observe(&readers.run, readers.interval, &wanted_flows, &news);
    });
    let ended = Screen {
        model: Model::new(settings.start.clone()),
        terminal: Terminal::new(CrosstermBackend::new(stdout())).map_err(TopError::Terminal)?,
        heard,
        news,
        wake,
        want_flows,
        change,
    }
    .go_on();
    signals.close();
    keys.end();
    drop(session);
    ended
}

struct Screen {
    model: Model,
    terminal: Terminal<CrosstermBackend<Stdout>>,
    heard: Receiver<News>,
    news: Sender<News>,
    wake: Sender<()>,
    want_flows: Sender<Option<FlowOrder>>,
    change: Changer,
}

impl Screen {
    fn go_on(mut self) -> Result<(), TopError> {
        loop {
            self.draw()?;
            let begin = Instant::now();
            let mut patience = None;
            // Many readings are one drawing. A key is answered at once.
            loop {
                let news = match patience {
                    None => self.heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(patience) => self.heard.recv_timeout(patience),
                };
                let is_key = match news {
                    Ok(News::Event(event)) => {
                        let is_key = matches!(*event, Event::Key(_) | Event::Size(..));
                        if self.take(*event) {
                            return Ok(());
                        }
                        is_key
                    }
                    Ok(News::Failed(error)) => return Err(error),
                    Err(RecvTimeoutError::Timeout) => true,
                    Err(RecvTimeoutError::Disconnected) => return Err(TopError::Bug),
                };
                let left = FRAME.saturating_sub(begin.elapsed());
                if is_key || left.is_zero() {
                    break;
                }
                patience = Some(left);
            }
        }
    }

    fn draw(&mut self) -> Result<(), TopError> {
        if !IS_ENTERED.load(Ordering::Acquire) {
            return Err(TopError::Bug);
        }
        let size = self.terminal.size().map_err(TopError::Terminal)?;
        if self.model.size != (size.width, size.height) {
            self.model.update(Event::Size(size.width, size.height));
        }
        let model = &self.model;
        let drawn = self
            .terminal
            .draw(|frame| view::screen(model, frame.area(), frame.buffer_mut()));
        drawn.map(|_| ()).map_err(TopError::Terminal)
    }

    /// Takes an event. Returns whether the screen ends.
    fn take(&mut self, event: Event) -> bool {
        match self.model.update(event) {
            Some(Action::Quit) => return true,
            Some(Action::Change(order)) => self.send(order),
            // A reader that has gone has said why.
            Some(Action::Reread) => drop(self.wake.send(())),
            Some(Action::Flows(order)) => drop(self.want_flows.send(order)),
            None => {}
        }
        false
    }

    /// Has the run make a change. A change of many thousand classes takes seconds, so a thread waits for it.
    fn send(&self, order: Order) {
        let change = Arc::clone(&self.change);
        spawn(&self.news, move |news| {
            let _ = news.send(Event::Answered(change(&order)).into());
        });
    }
}

/// Starts a thread that has news. If it panics, the screen ends.
fn spawn(news: &Sender<News>, work: impl FnOnce(Sender<News>) + Send + 'static) -> JoinHandle<()> {
    struct Watched(Sender<News>);
    impl Drop for Watched {
        fn drop(&mut self) {
            if thread::panicking() {
                let _ = self.0.send(News::Failed(TopError::Bug));
            }
        }
    }
    let watched = Watched(news.clone());
    thread::spawn(move || work(watched.0.clone()))
}

/// Ends the screen at a signal that asks to end, or if the terminal has gone.
fn on_signals(news: &Sender<News>) -> io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    spawn(news, move |news| {
        for _ in signals.forever() {
            let _ = news.send(Event::Key(Key::Interrupt).into());
        }
    });
    Ok(handle)
}

/// The thread that reads keys.
struct Keys {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Keys {
    fn read(news: Sender<News>) -> Keys {
        let is_over = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&is_over);
        let thread = spawn(&news, move |news| {
            if let Err(error) = read_keys(&ending, &news) {
                let _ = news.send(News::Failed(TopError::Terminal(error)));
            }
        });
        Keys { is_over, thread }
    }

    /// Ends it, so that it takes no keys of what comes next.
    fn end(self) {
        self.is_over.store(true, Ordering::Release);
        let _ = self.thread.join();
    }
}

fn read_keys(is_over: &AtomicBool, news: &Sender<News>) -> io::Result<()> {
    while !is_over.load(Ordering::Acquire) {
        if !event::poll(GLANCE)? {
            continue;
        }
        let event = match event::read()? {
            Input::Key(key) => key_of(key).map(Event::Key),
            Input::Resize(columns, lines) => Some(Event::Size(columns, lines)),
            _ => None,
        };
        if let Some(event) = event
            && news.send(event.into()).is_err()
        {
            return Ok(());
        }
    }
    Ok(())
}

fn key_of(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Key::Interrupt),
            _ => None,
        };
    }
    match key.code {
        KeyCode::Char(letter) => Some(Key::Char(letter)),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Esc),
        KeyCode::Backspace => Some(Key::Backspace),
        KeyCode::Tab | KeyCode::BackTab => Some(Key::Tab),
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::Left => Some(Key::Left),
        KeyCode::Right => Some(Key::Right),
        KeyCode::PageUp => Some(Key::PageUp),
        KeyCode::PageDown => Some(Key::PageDown),
        KeyCode::Home => Some(Key::Home),
        KeyCode::End => Some(Key::End),
        KeyCode::F(1) => Some(Key::Char('?')),
        _ => None,
    }
}

/// Whether the terminal has the modes of the screen.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The terminal in the modes of the screen, until this value is dropped.
struct Session;

impl Session {
    fn enter() -> io::Result<Session> {
        // Any thread can panic. The message belongs on the user's own screen, after it is restored.
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
        IS_ENTERED.store(true, Ordering::Release);
        let session = Session;
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        Ok(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, once. Nothing can be done if that fails: the terminal has gone.
fn restore() {
    if IS_ENTERED.swap(false, Ordering::AcqRel) {
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
