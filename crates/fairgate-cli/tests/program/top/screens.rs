//! Screens as text, in several sizes.

use std::path::Path;

use fairgate_cli::top::{Action, Answered, Event, Key, Model, Sort, Start, page, screen};
use fairgate_run_api::FlowOrder;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Modifier;

use super::readings::{flows, interval, status, trees};
use crate::snapshot::assert_snapshot;

/// A screen of this size after so many seconds of the run.
fn model(width: u16, height: u16, seconds: u64) -> Model {
    started(Start::default(), width, height, seconds)
}

fn started(start: Start, width: u16, height: u16, seconds: u64) -> Model {
    let mut model = Model::new(start);
    model.update(Event::Size(width, height));
    model.update(status(4711, 3_690.0));
    model.update(trees(3));
    for number in 1..=seconds {
        model.update(interval(number));
    }
    model
}

fn press(model: &mut Model, keys: &[Key]) {
    for key in keys {
        assert_eq!(model.update(Event::Key(*key)), None, "{key:?}");
    }
}

fn typed(text: &str) -> Vec<Key> {
    text.chars().map(Key::Char).collect()
}

fn drawn(model: &Model, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is in memory");
    let draw = |frame: &mut ratatui::Frame<'_>| screen(model, frame.area(), frame.buffer_mut());
    terminal.draw(draw).expect("it is in memory");
    terminal
}

/// The screen as text. Each line ends with a bar, so that its width is seen.
fn text(model: &Model, width: u16, height: u16) -> String {
    let terminal = drawn(model, width, height);
    let cells = terminal.backend().buffer();
    let line = |y: u16| {
        let symbols = (0..width).map(|x| cells[(x, y)].symbol());
        symbols.collect::<String>() + "|\n"
    };
    (0..height).map(line).collect()
}

#[track_caller]
fn assert_screen(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/top");
    assert_snapshot(&folder.join(format!("{name}.txt")), text);
}

#[test]
fn the_usual_sizes_have_all_that_fits() {
    for (width, height) in [
        (80, 24),
        (100, 24),
        (120, 40),
        (200, 50),
        (60, 15),
        (40, 10),
        (20, 5),
    ] {
        let mut model = model(width, height, 40);
        // The host that sends most.
        press(&mut model, &typed("ssS"));
        press(&mut model, &[Key::Down; 4]);
        assert_screen(&format!("{width}x{height}"), &text(&model, width, height));
    }
}

#[test]
fn no_size_is_too_small() {
    let mut model = model(80, 24, 3);
    let (help, dialog) = (typed("?"), typed("?r"));
    all_sizes(
        &mut model,
        &[vec![], help.clone(), dialog, vec![Key::Enter], vec![Key::Esc]],
    );
    model.update(Event::Key(Key::Char('f')));
    all_sizes(&mut model, &[vec![]]);
    model.update(flows());
    all_sizes(&mut model, &[vec![], help]);
}

/// Draws the screen after each of these keys in all sizes.
fn all_sizes(model: &mut Model, keys: &[Vec<Key>]) {
    for keys in keys {
        press(model, keys);
        for width in (1..30).chain([65_535]) {
            for height in 1..30 {
                // A buffer has as many cells as its area.
                if width < 30 || height == 1 {
                    model.update(Event::Size(width, height));
                    text(model, width, height);
                }
            }
        }
    }
}

#[test]
fn the_other_direction_and_other_shapes() {
    let mut model = model(80, 24, 20);
    press(&mut model, &[Key::Tab]);
    assert_screen("other-direction", &text(&model, 80, 24));
    press(&mut model, &[Key::Tab, Key::Char('v'), Key::Char('s')]);
    assert_screen("flat-by-rate", &text(&model, 80, 24));
    press(&mut model, &typed("v"));
    assert_screen("hosts-by-rate", &text(&model, 80, 24));
    press(&mut model, &[Key::Tab]);
    assert!(text(&model, 80, 24).contains("no class is given to a host"));
}

#[test]
fn a_filter_and_closed_classes() {
    let mut model = model(80, 24, 20);
    press(&mut model, &typed("/64.0.2"));
    assert!(text(&model, 80, 24).contains("filter: 64.0.2_"));
    press(&mut model, &[Key::Enter]);
    let shown = text(&model, 80, 24);
    assert!(
        shown.contains("\n101 100.64.0.2"),
        "the match is selected: {shown}"
    );
    assert_screen("filtered", &text(&model, 80, 24));
    press(&mut model, &[Key::Esc, Key::Home, Key::Down, Key::Enter]);
    let closed = text(&model, 80, 24);
    assert!(closed.contains("+ 1") && !closed.contains("drr"), "{closed}");
    press(&mut model, &[Key::Right]);
    assert!(text(&model, 80, 24).contains("drr"));
}

#[test]
fn flows_take_the_place_of_the_classes() {
    let mut model = model(80, 24, 20);
    let order = |order| Some(Action::Flows(order));
    assert_eq!(
        model.update(Event::Key(Key::Char('f'))),
        order(Some(FlowOrder::Rate))
    );
    assert!(text(&model, 80, 24).contains("observes its flows for a second"));
    model.update(flows());
    for (width, height) in [(80, 24), (160, 40), (40, 10)] {
        model.update(Event::Size(width, height));
        assert_screen(&format!("flows-{width}x{height}"), &text(&model, width, height));
    }
    model.update(Event::Size(80, 24));
    press(&mut model, &[Key::End]);
    let end = text(&model, 80, 24);
    assert!(end.contains("icmp 198.51.100.7 > 100.64.0.1 "), "{end}");
    assert_eq!(
        model.update(Event::Key(Key::Char('s'))),
        order(Some(FlowOrder::Bytes))
    );
    assert_eq!(model.update(Event::Key(Key::Esc)), order(None));
    assert!(text(&model, 80, 24).contains("CLASS"));
}

#[test]
fn help_lists_the_keys() {
    let mut model = model(80, 24, 2);
    press(&mut model, &typed("?"));
    assert_screen("help", &text(&model, 80, 24));
    press(&mut model, &typed("q"));
    assert!(!text(&model, 80, 24).contains("Ctrl-C"), "any key closes it");
    assert_eq!(model.update(Event::Key(Key::Char('q'))), Some(Action::Quit));
}

/// What was typed is shown as the command that would do the same, and is sent after a yes only.
#[test]
fn a_rate_is_changed() {
    let mut model = model(80, 24, 20);
    press(&mut model, &[Key::Down; 6]);
    press(&mut model, &typed("r"));
    press(&mut model, &[Key::Backspace; 5]);
    press(&mut model, &typed("3mbit"));
    assert_screen("rate-edit", &text(&model, 80, 24));
    press(&mut model, &[Key::Enter, Key::Enter]);
    assert_screen("rate-confirm", &text(&model, 80, 24));
    let Some(Action::Change(order)) = model.update(Event::Key(Key::Char('y'))) else {
        panic!("it is not sent");
    };
    assert_eq!(order.line, "class change 100 rate=3mbit");
    assert_eq!((order.from.as_str(), order.revision), ("eth0", Some(3)));
    let refused = Answered::Refused {
        message: "nothing was changed: word 4: `rate`: a rate must be above 0".to_owned(),
        help: "write the rate of the link, or remove the shaper".to_owned(),
    };
    assert_eq!(model.update(Event::Answered(refused)), Some(Action::Reread));
    assert_screen("rate-refused", &text(&model, 80, 24));
    press(&mut model, &[Key::Enter]);
    assert!(!text(&model, 80, 24).contains("nothing was changed"));
}

/// A run that was named by its socket needs the name in each command.
#[test]
fn the_command_of_a_change_names_the_socket() {
    let start = Start {
        options: " --socket /tmp/home.sock".to_owned(),
        ..Start::default()
    };
    let mut model = started(start, 80, 24, 2);
    press(&mut model, &[Key::Down; 6]);
    press(&mut model, &typed("r"));
    press(&mut model, &[Key::Enter]);
    let text = text(&model, 80, 24);
    assert!(
        text.contains("fairgate class --from eth0 change 100 rate=2mbit --socket"),
        "{text}"
    );
}

#[test]
fn a_run_that_ends_and_one_that_begins_are_told() {
    let mut model = model(80, 24, 20);
    model.update(Event::Lost("the run has ended".to_owned()));
    assert_screen("ended", &text(&model, 80, 24));
    model.update(status(4712, 0.5));
    let restarted = text(&model, 80, 24);
    assert!(restarted.contains("the run was started again"), "{restarted}");
    assert!(
        restarted.contains("process 4712") && restarted.contains("no figures yet"),
        "{restarted}"
    );
}

#[test]
fn a_paused_screen_stands_still() {
    let mut model = model(80, 24, 20);
    press(&mut model, &typed("p"));
    let before = text(&model, 80, 24);
    assert!(before.contains("PAUSED"), "{before}");
    model.update(interval(21));
    model.update(status(4711, 3_721.0));
    assert_eq!(text(&model, 80, 24), before);
    press(&mut model, &[Key::Down]);
    assert_ne!(text(&model, 80, 24), before, "the selection moves");
    press(&mut model, &typed("p"));
    assert!(!text(&model, 80, 24).contains("PAUSED"));
}

#[test]
fn the_selected_line_is_reversed_and_follows_its_class() {
    let mut model = model(80, 24, 20);
    press(&mut model, &[Key::Down, Key::Down, Key::Down]);
    let selected = |model: &Model| {
        let terminal = drawn(model, 80, 24);
        let cells = terminal.backend().buffer();
        let is_reversed = |y: &u16| cells[(40, *y)].modifier.contains(Modifier::REVERSED);
        let lines: Vec<u16> = (3..23).filter(is_reversed).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        (0..20).map(|x| cells[(x, lines[0])].symbol()).collect::<String>()
    };
    let class = selected(&model);
    assert!(class.contains("20 drr"), "{class}");
    press(&mut model, &typed("s"));
    assert_eq!(selected(&model), class);
}

/// Names come from other processes, and can't control the terminal.
#[test]
fn control_characters_are_not_drawn() {
    let mut model = model(80, 24, 1);
    let Event::Interval(mut reading) = interval(2) else {
        unreachable!("it is one");
    };
    reading.rows[4].host = Some("a\x1b[2Jb\u{9b}c".to_owned());
    model.update(Event::Interval(reading));
    let text = text(&model, 80, 24);
    assert!(
        text.contains("100 a") && !text.contains('\x1b') && !text.contains('\u{9b}'),
        "{text}"
    );
}

#[test]
fn a_page_has_both_directions() {
    let mut model = Model::new(Start {
        sort: Sort::Rate,
        ..Start::default()
    });
    model.update(status(4711, 3_690.0));
    model.update(trees(3));
    model.update(interval(1));
    model.update(interval(2));
    assert_screen("page", &page(&model, 160));
}

/// docs/top.md shows the screen as it is.
#[test]
fn the_documentation_has_the_screen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).expect(path);
    let screen: String = read("tests/snapshots/top/100x24.txt")
        .lines()
        .map(|line| line.trim_end_matches('|').trim_end().to_owned() + "\n")
        .collect();
    let documentation = read("../../docs/top.md");
    assert!(
        documentation.contains(&screen),
        "docs/top.md should have this screen:\n{screen}"
    );
}

/// Names of a run, its interfaces and its flows are drawn, and are no commands for the terminal.
#[test]
fn names_do_not_control_the_terminal() {
    let hostile = |name: &str| format!("{name}\u{1b}[31m\u{9b}2J\u{202e}x");
    let mut model = Model::new(Start::default());
    model.update(Event::Size(200, 50));
    let (Event::Status(mut status), Event::Interval(mut interval), Event::Flows(mut flows)) =
        (status(4711, 3_690.0), interval(1), flows())
    else {
        panic!("these are what they are called");
    };
    status.name = hostile("run");
    for direction in &mut status.directions {
        (direction.from, direction.to) = (hostile(&direction.from), hostile(&direction.to));
    }
    for row in &mut interval.rows {
        row.from = hostile(&row.from);
        row.host = row.host.as_deref().map(hostile);
    }
    for flow in &mut flows.flows {
        (flow.from, flow.source) = (hostile(&flow.from), hostile(&flow.source));
    }
    model.update(Event::Status(status));
    model.update(Event::Interval(interval));
    let classes = text(&model, 200, 50);
    model.update(Event::Key(Key::Char('f')));
    model.update(Event::Flows(flows));
    for drawn in [classes, text(&model, 200, 50)] {
        assert!(drawn.contains("\\u{1b}[31m\\u{9b}2J\\u{202e}x"), "{drawn}");
        assert!(
            !drawn.contains(|drawn: char| fairgate::harmless::is_hidden(drawn) && drawn != '\n'),
            "{drawn:?}"
        );
    }
}
