//! A program on a pseudo terminal, and the screen that it draws there.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};

use crate::common::program::Program;
use crate::common::until;

const COLUMNS: usize = 100;
const LINES: usize = 30;

/// A program on a terminal of its own.
pub(crate) struct OnTerminal {
    program: Program,
    /// The side of the keyboard and the screen.
    keyboard: File,
    /// Keeps the terminal after the end of the program.
    terminal: OwnedFd,
    before: Termios,
    screen: Arc<Mutex<Screen>>,
}

impl OnTerminal {
    /// Starts a program. `setsid` makes the terminal its own, whatever the test itself has.
    pub(crate) fn start(program: &str, arguments: &[&str]) -> OnTerminal {
        let size = Winsize {
            ws_row: LINES as u16,
            ws_col: COLUMNS as u16,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(&size, None).expect("a pseudo terminal");
        let before = tcgetattr(&pair.slave).expect("a terminal");
        let end = || Stdio::from(pair.slave.try_clone().expect("a descriptor"));
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", program])
            .args(arguments)
            .env("TERM", "xterm");
        let program = Program::start_with(&mut command, |command| {
            command.stdin(end()).stdout(end());
        });
        // It has copies of the descriptors.
        drop(command);
        let keyboard = File::from(pair.master);
        let screen = Arc::new(Mutex::new(Screen::new()));
        let (mut output, drawn) = (keyboard.try_clone().expect("a descriptor"), Arc::clone(&screen));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                let mut screen = drawn.lock().unwrap_or_else(PoisonError::into_inner);
                screen.take(&bytes[..length]);
            }
        });
        OnTerminal {
            program,
            keyboard,
            terminal: pair.slave,
            before,
            screen,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the terminal is open");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }

    /// Waits until the screen has this text.
    pub(crate) fn until_shown(&self, text: &str) {
        let has_it = |shown: &str| shown.contains(text);
        let mut last = String::new();
        let waiting = std::panic::AssertUnwindSafe(|| {
            until(&format!("the screen shows {text}"), || {
                last = self.text();
                has_it(&last)
            });
        });
        if let Err(panic) = std::panic::catch_unwind(waiting) {
            crate::common::say(&self.text());
            std::panic::resume_unwind(panic);
        }
    }

    /// The screen as text.
    pub(crate) fn text(&self) -> String {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = screen.cells.iter();
        lines.map(|line| line.iter().collect::<String>() + "\n").collect()
    }

    /// Whether the terminal passes keys on at once, and shows a screen of its own.
    pub(crate) fn has_modes_of_screen(&self) -> bool {
        let now = tcgetattr(&self.terminal).expect("a terminal");
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        !now.local_flags.contains(LocalFlags::ICANON) && screen.is_alternate
    }

    /// Waits for its end. Checks that the terminal is as it was before.
    pub(crate) fn ended(self) -> Output {
        let OnTerminal {
            program,
            keyboard: _keyboard,
            terminal,
            before,
            screen,
        } = self;
        let output = program.output();
        let now = tcgetattr(&terminal).expect("a terminal");
        assert_eq!(now, before, "the modes are not restored");
        until("the screen is restored", || {
            let screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
            !screen.is_alternate && screen.has_cursor
        });
        output
    }
}

/// What a terminal shows. It knows what the program uses: places, screens, the cursor; colours are ignored.
struct Screen {
    cells: Vec<Vec<char>>,
    line: usize,
    column: usize,
    is_alternate: bool,
    has_cursor: bool,
    /// The beginning of a letter or of a sequence.
    rest: Vec<u8>,
}

impl Screen {
    fn new() -> Screen {
        Screen {
            cells: vec![vec![' '; COLUMNS]; LINES],
            line: 0,
            column: 0,
            is_alternate: false,
            has_cursor: true,
            rest: Vec::new(),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let text = match std::str::from_utf8(&rest) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).expect("it is valid"),
        };
        let mut left = text;
        while let Some(letter) = left.chars().next() {
            if letter == '\x1b' {
                let Some((parameters, end, behind)) = sequence(left) else {
                    break;
                };
                self.obey(parameters, end);
                left = behind;
                continue;
            }
            left = &left[letter.len_utf8()..];
            match letter {
                '\r' => self.column = 0,
                '\n' => self.line = (self.line + 1).min(LINES - 1),
                letter => {
                    if let Some(cell) = self.cells[self.line].get_mut(self.column) {
                        *cell = letter;
                    }
                    self.column += 1;
                }
            }
        }
        self.rest = rest[text.len() - left.len()..].to_vec();
    }

    /// Obeys a control sequence (ECMA-48, and xterm's private modes).
    fn obey(&mut self, parameters: &str, end: char) {
        match (parameters, end) {
            (place, 'H') => {
                let mut numbers = place
                    .split(';')
                    .map(|number| number.parse::<usize>().unwrap_or(1));
                self.line = (numbers.next().unwrap_or(1) - 1).min(LINES - 1);
                self.column = numbers.next().unwrap_or(1) - 1;
            }
            ("2" | "", 'J') => self.cells = vec![vec![' '; COLUMNS]; LINES],
            ("?1049", mode) => self.is_alternate = mode == 'h',
            ("?25", mode) => self.has_cursor = mode == 'h',
            _ => {}
        }
    }
}

/// Divides `ESC [ parameters end rest`. Returns `None` if the end is missing.
fn sequence(text: &str) -> Option<(&str, char, &str)> {
    let inside = text.strip_prefix("\x1b[")?;
    let end = inside.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (parameters, rest) = inside.split_at(end);
    let letter = rest.chars().next()?;
    Some((parameters, letter, &rest[1..]))
}
