//! Mistakes, and what has no effect.

use super::{mistake, tree, warnings};
use crate::dummynet::Script;
use crate::tc::Device;

#[test]
fn mistakes_are_reported_with_location_and_remedy() {
    let at = |text: &str, line, column, message: &str, remedy: &str| {
        let (found_line, found_column, found, help) = mistake(text);
        assert_eq!(
            (found_line, found_column, found.as_str()),
            (line, column, message),
            "{text}"
        );
        assert!(help.contains(remedy), "{text}: {help}");
    };
    let with = |options: &str| format!("pipe 1 config bw 1Mbit/s {options}");
    let rule = |rule: &str| format!("pipe 1 config\nadd {rule}");
    at(&with("plr 1.5"), 1, 30, "`plr` is above 1", "0.01");
    at(
        &with("mask dst-ip /24"),
        1,
        38,
        "`dst-ip`: ipfw applies `/24` to the low bits",
        "0xffffff00",
    );
    at(
        &with("mask dst-ip 0xffffff00 src-ip 0xffffffff"),
        1,
        26,
        "this mask can't be carried over",
        "the same mask",
    );
    at(
        &with("mask dst-port 0xff00"),
        1,
        40,
        "`dst-port`: `0xff00` covers only a part of the field",
        "0xffff",
    );
    at(
        &with("mask dst-ip 0xffffffff buckets 16384"),
        1,
        57,
        "class numbers end at 262143, but 262144 hosts need the numbers from 2 on",
        "buckets 16383",
    );
    at(
        "pipe 1 config bw 1Mbit/s\nsched 1 config type prio\nqueue 1 config sched 1 mask proto 0xff",
        3,
        24,
        "`mask` can't be carried over with a scheduler `prio`",
        "wf2q+",
    );
    at(
        &with("profile"),
        1,
        26,
        "`profile` has no value, or too few",
        "after `profile`",
    );
    at(
        &with("profile tests"),
        1,
        34,
        "the profile tests can't be read: it is not a file",
        "begins at the folder of the script",
    );
    at(
        &with("bandwith 5"),
        1,
        26,
        "the option `bandwith` of a pipe can't be carried over",
        "bw",
    );
    at(
        &with("weight 5"),
        1,
        26,
        "the option `weight` of a pipe can't be carried over",
        "understood are",
    );
    at(
        "pipe 1 config bw 2.5Mbit/s",
        1,
        18,
        "`bw`: `2.5Mbit/s` has decimals, which ipfw does not read",
        "2500Kbit/s",
    );
    at(
        "pipe 1 config bw 10Mbots/s",
        1,
        20,
        "`bw`: `Mbots/s` is not a unit of a bandwidth",
        "10Mbit/s",
    );
    at(
        "pipe 1 config bw em0",
        1,
        18,
        "`bw`: `em0` as a clock can't be carried over",
        "10Mbit/s",
    );
    at(
        "pipe 1 config bw",
        1,
        15,
        "`bw` has no value, or too few",
        "after `bw`",
    );
    at(
        &with("queue 0"),
        1,
        32,
        "`queue`: a queue of `0` can't hold any packet, or is too large",
        "100KBytes",
    );
    at(
        &with("red 1.5/10/30/0.1"),
        1,
        30,
        "the weight 1.5 is not above 0 and at most 1",
        "0.002",
    );
    at(
        &with("red 0/10/30/0.1"),
        1,
        30,
        "the weight 0 is not above 0 and at most 1",
        "0.002",
    );
    at(
        &with("red 0.5/10"),
        1,
        30,
        "`0.5/10` has 2 parts, not 4",
        "w_q/min_th/max_th/max_p",
    );
    at(
        &with("ecn"),
        1,
        26,
        "`ecn` here can't be carried over",
        "after red",
    );
    at(
        &with("codel limit 5"),
        1,
        32,
        "the option `limit` can't be carried over",
        "target",
    );
    at(
        &with("pie nodre"),
        1,
        30,
        "the option `nodre` can't be carried over",
        "dre",
    );
    at(
        &with("pie alpha 0.1"),
        1,
        36,
        "`alpha` can't be carried over",
        "sixteenths",
    );
    at(
        "pip 1 config",
        1,
        1,
        "expected `pipe`, `queue`, `sched`, `add`, `delete`, `flush`, `set` or `table`, but found `pip`",
        "config bw",
    );
    at(
        "pipe 0 config",
        1,
        6,
        "expected a number from 1 to 65535, but found `0`",
        "",
    );
    at(
        "pipe 1",
        1,
        7,
        "the line ends where `config` or `delete` is expected",
        "",
    );
    at("# nothing", 1, 1, "no pipe is configured", "pipe 1 config");
    at("queue 1 config weight 3", 1, 7, "queue 1 has no pipe", "add pipe");
    at(
        "queue 1 config pipe 4",
        1,
        21,
        "there is no pipe 4",
        "pipe 4 config",
    );
    at(
        "pipe 1 config\npipe 2 config",
        1,
        6,
        "no rule says which packets a pipe is for",
        "add rules",
    );
    at(
        &rule("pipe 2 ip from any to any"),
        2,
        10,
        "there is no pipe 2",
        "pipe 2 config",
    );
    at(
        &rule("divert 8668 ip from any to any"),
        2,
        5,
        "a rule that does `divert` can't be carried over",
        "deny",
    );
    at(
        "pipe 1 config\nadd 10 skipto 300 udp from any to any\nadd 20 pipe 1 ip from any to any",
        2,
        15,
        "a rule that skips others to reach ones with conditions can't be carried over",
        "conditions",
    );
    at(
        &rule("pipe 1 ip from table(9) to any"),
        2,
        20,
        "a table that has no lines can't be carried over: `table(9)`",
        "table 1 add",
    );
    at(
        "pipe 1 config\ntable 1 add localhost\nadd pipe 1 ip from any to any",
        2,
        13,
        "`localhost` is not an address",
        "192.0.2.0/24",
    );
    at(
        &rule("pipe 1 ip from any 99999 to any"),
        2,
        24,
        "a list like this can't be carried over: `99999`",
        "5000-5100",
    );
    at(
        &rule("pipe 1 ip from any to any keep-state"),
        2,
        31,
        "`keep-state` of a rule can't be carried over",
        "via",
    );
    at(
        &rule("pipe 1 ip from any to any in out"),
        2,
        34,
        "a second direction can't be carried over: `out`",
        "one direction",
    );
    at(
        &rule("pipe 1 ip to any"),
        2,
        15,
        "expected `from`, but found `to`",
        "",
    );
    at(
        &rule("pipe 1 ospfx from any to any"),
        2,
        12,
        "`ospfx` is not a protocol",
        "",
    );
    at(
        "pipe 1 config\nsched 1 config type fqcodel",
        2,
        21,
        "the scheduler `fqcodel` is not supported",
        "fq_codel",
    );
    at(
        "pipe 1 config\nadd allow ip from any to any",
        1,
        6,
        "no rule sends packets to a pipe or a queue",
        "add a rule",
    );
}

#[test]
fn what_has_no_effect_in_dummynet_has_none_here_with_a_warning() {
    let says = |text: &str, expected: &str| assert_eq!(warnings(text), [expected], "{text}");
    says(
        "pipe 1 config\npipe 2 config\nadd pipe 1 in",
        "line 2: no rule sends packets to pipe 2",
    );
    says(
        "pipe 1 config mask dst-ip 0xffffffff",
        "line 1: `mask` has no effect: packets never wait in a pipe without bandwidth",
    );
    says(
        "pipe 1 config burst 9000",
        "line 1: `burst` has no effect: a pipe without bandwidth shapes nothing",
    );
    says(
        "pipe 1 config\nadd pipe 1 ip from any to any\nadd pipe 1 tcp from any to any",
        "line 3: this rule is never tried: one before it matches every packet",
    );
    let queue = |options: &str| format!("pipe 1 config\nqueue 1 config pipe 1 {options}\nadd queue 1 in");
    says(
        &queue("weight 101"),
        "line 2: `weight` 101 is out of range: 100 is used, as by dummynet",
    );
    assert!(tree(&queue("weight 101")).contains("1 weight=100"));
    says(
        &queue("lmax 1000"),
        "line 2: `lmax` has no effect: WF2Q+ needs no longest packet",
    );
    says(
        &format!("sched 1 config queue 9 type fq_codel\n{}", queue("")),
        "line 1: this has no effect: a scheduler `fq_codel` has queues of its own",
    );
    says(
        "pipe 1 config type fq_pie onoff\nqueue 1 config pipe 1\nadd queue 1 in",
        "line 1: `onoff` has no effect: in fq_pie, PIE begins with the first packet of a flow",
    );
    // The firewall's own packets do not pass a bridge. The rule must not become one for all packets.
    let own = "pipe 1 config\npipe 2 config\nadd pipe 2 ip from any to me\nadd pipe 1 ip from not me to any";
    assert_eq!(tree(own), "out: fifo limit=50");
    assert_eq!(
        warnings(own),
        [
            "line 2: no rule sends packets to pipe 2",
            "line 3: this rule matches nothing: a bridge has no address; write the firewall's if its packets \
             pass here",
        ]
    );
}

/// A mistake in a profile is shown in the profile, and in a list after those of the script.
#[test]
fn mistakes_of_a_profile_are_located_in_it() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/test.ipfw");
    let error = Script::parse(script, "pipe 1 config profile fireqos-line.tc", Device::default())
        .map(|_| ())
        .expect_err("it is no profile");
    let problem = &error.problems()[0];
    assert!(problem.file().ends_with("fireqos-line.tc"), "{problem:?}");
    let text = "pipe 1 config profile fireqos-line.tc wieght 1";
    let error = Script::parse(script, text, Device::default())
        .map(|_| ())
        .expect_err("there are mistakes");
    let files: Vec<bool> = error
        .problems()
        .iter()
        .map(|problem| problem.file() == script)
        .collect();
    assert!(
        error.file() == script && files[0] && !files[1..].contains(&true),
        "{files:?}"
    );
}
