//! Any keys and any readings, in any order.

use fairgate_cli::top::{Action, Answered, Event, Key, Model, Start, Trees, page, screen};
use fairgate_run_api::{ClassInterval, Interval};
use proptest::collection::vec;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::readings::{flows, interval, status, trees};
use super::testing::row;

fn key() -> impl Strategy<Value = Key> {
    let fixed = prop::sample::select(vec![
        Key::Enter,
        Key::Esc,
        Key::Backspace,
        Key::Tab,
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
    ]);
    let letters = prop::sample::select("qsSvupf/r?yn19hjk+-. ".chars().collect::<Vec<_>>());
    prop_oneof![
        3 => fixed,
        3 => letters.prop_map(Key::Char),
        1 => any::<char>().prop_map(Key::Char),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let class = prop_oneof![4 => 0..130u16, 1 => any::<u16>()];
    prop_oneof![
        4 => vec(class, 0..4).prop_map(|path| {
            path.iter().map(u16::to_string).collect::<Vec<_>>().join("/")
        }),
        1 => "[0-9a-z/-]{0,6}",
    ]
}

fn class_interval() -> impl Strategy<Value = ClassInterval> {
    let host = prop::option::of("[a-c]");
    (path(), any::<f64>(), host, any::<u64>(), any::<bool>()).prop_map(|(path, rate, host, count, other)| {
        let mut row = row(&path, 0.0);
        (row.host, row.marked, row.seconds) = (host, count / 1_000_000, rate.abs());
        row.backlog.packets = count / 1_000;
        row.drops.insert("aqm".to_owned(), count / 1_000_000);
        if other {
            row.from = "eth1".to_owned();
            row.mean_delay_us = None;
        }
        row
    })
}

fn event() -> impl Strategy<Value = Event> {
    let readings = (vec(class_interval(), 0..20), 0.0..5_000.0).prop_map(|(rows, at_s)| {
        Event::Interval(Interval {
            at_s,
            missed_delays: 0,
            rows,
        })
    });
    let answers = prop_oneof![
        Just(Answered::Made("done".to_owned())),
        ("\\PC{0,80}", "\\PC{0,300}").prop_map(|(message, help)| Answered::Refused { message, help }),
    ];
    prop_oneof![
        12 => key().prop_map(Event::Key),
        3 => readings,
        3 => (1..30u64).prop_map(interval),
        1 => (4711..4713u32, 0.0..5_000.0).prop_map(|(pid, uptime)| status(pid, uptime)),
        1 => (0..9u64).prop_map(trees),
        1 => Just(Event::Trees(Trees::default())),
        1 => "\\PC{0,60}".prop_map(Event::Lost),
        1 => (1..150u16, 1..50u16).prop_map(|(width, height)| Event::Size(width, height)),
        1 => answers.prop_map(Event::Answered),
        1 => Just(flows()),
    ]
}

proptest! {
    /// Nothing panics. Where there is a line there is a selected one, and it is on the screen.
    #[test]
    fn any_keys_and_readings_leave_a_valid_screen(events in vec(event(), 0..60)) {
        let mut model = Model::new(Start::default());
        let mut size = (80, 24);
        for event in events {
            if let Event::Size(width, height) = event {
                size = (width, height);
            }
            let is_answer = matches!(event, Event::Answered(_));
            let is_key = matches!(event, Event::Key(_));
            match model.update(event) {
                Some(Action::Quit | Action::Change(_) | Action::Flows(_)) => prop_assert!(is_key),
                Some(Action::Reread) => prop_assert!(is_answer),
                None => {}
            }
            let area = Rect::new(0, 0, size.0, size.1);
            let mut cells = Buffer::empty(area);
            screen(&model, area, &mut cells);
            if let Some(selected) = model.selected_line() {
                prop_assert!(selected < model.line_count());
                // The first cell of the last line can be a reversed key.
                let x = 1.min(size.0 - 1);
                let is_shown = (0..size.1).any(|y| cells[(x, y)].modifier.contains(Modifier::REVERSED));
                prop_assert!(is_shown || model.is_covered(), "line {selected} is not on the screen");
            } else {
                prop_assert_eq!(model.line_count(), 0);
            }
        }
        page(&model, 100);
    }
}
