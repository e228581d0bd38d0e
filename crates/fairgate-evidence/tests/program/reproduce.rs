//! `fairgate-lab reproduce` and `fairgate-lab theory`.

use super::{ends, json};

#[test]
fn without_a_name_the_experiments_are_listed() {
    let (text, _) = ends(&["reproduce"], 0);
    let list = json(&["reproduce", "--json"], 0);
    assert_eq!(list["schema"], "fairgate.experiments/1");
    for experiment in list["experiments"].as_array().expect("a list") {
        assert!(text.contains(experiment["id"].as_str().expect("a name")));
    }
}

#[test]
fn an_unknown_experiment_is_an_error_that_names_the_known_ones() {
    let (_, errors) = ends(&["reproduce", "sqf-fig33"], 2);
    assert!(
        errors.contains("no experiment `sqf-fig33`") && errors.contains("sqf-fig3"),
        "{errors}"
    );
}

#[test]
fn an_experiment_prints_its_claims_and_writes_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("a path of text");
    let result = json(
        &[
            "reproduce",
            "sqf-fig3",
            "--quick",
            "--seeds",
            "1",
            "--json",
            "--out",
            out,
        ],
        0,
    );
    assert_eq!(result["schema"], "fairgate.reproduce/1");
    // The published statement does not follow from the published formula, if it is read as it is printed.
    let claims = &result["experiments"][0]["claims"];
    assert_eq!(result["experiments"][0]["holds"], true);
    assert_eq!(claims[0]["verdict"], "reproduced if");
    assert_eq!(
        (&claims[0]["holds"], &claims[0]["instead"][0]["holds"]),
        (&true.into(), &false.into())
    );
    for name in [
        "result.json",
        "measured.csv",
        "curves.csv",
        "page.html",
        "figure-1.svg",
        "figure-2.svg",
    ] {
        let file = folder.path().join("sqf-fig3").join(name);
        assert!(file.metadata().is_ok_and(|file| file.len() > 200), "{name}");
    }
}

/// An experiment of a user's own: half of a link of 10 Mbit/s is used.
const OWN: &str = r#"
[experiment]
paper = "mine"
place = "my desk"
title = "A link that is half full"
about = "One flow."

[[experiment.show]]
id = "half"
text = "half of the link is used"
holds = [{ value = ["utilisation of left->right", "the network of the file"], from = 50, to = 55 }]

[[experiment.measure]]
figure = "utilisation"
of = ["left->right"]

[[experiment.figure]]
title = "Throughput"
throughput_of = ["flow"]

[simulate]
duration = "2s"

[[simulate.link]]
a = "left"
b = "right"
rate = "10mbit"

[[simulate.flow]]
name = "flow"
from = "left"
to = "right"
udp = { rate = "5mbit" }
"#;

#[test]
fn experiments_of_ones_own_are_files_and_one_page_leads_to_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("a path of text")
            .to_owned()
    };
    let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("it is written");
    write("mine.toml", OWN);
    write(
        "mine.published.csv",
        "measure,case,value,unit,place\nutilisation of left->right,the network of the file,52,%,here\n",
    );
    write("other.toml", &OWN.replace("from = 50", "from = 54"));
    let (mine, other, out) = (path("mine.toml"), path("other.toml"), path("out"));
    let arguments = ["reproduce", &mine, &other, "--seeds", "1", "--out", &out];
    let (text, _) = ends(&arguments, 1);
    assert!(text.contains("reproduced     half of the link is used"), "{text}");
    assert!(text.contains("not reproduced half of the link is used"), "{text}");
    let index = std::fs::read_to_string(folder.path().join("out/index.html")).expect("it is there");
    for part in [
        "<a href=\"mine/page.html\">mine</a>",
        "<a href=\"other/page.html\">other</a>",
        "1 of 1",
        "0 of 1",
    ] {
        assert!(index.contains(part), "{part} in {index}");
    }
    for name in ["mine/page.html", "mine/figure-1.svg", "other/result.json"] {
        assert!(folder.path().join("out").join(name).exists(), "{name}");
    }
    write("mine.toml", &OWN.replace("\"utilisation\"", "\"utilization\""));
    let (_, errors) = ends(&["reproduce", &mine, "--out", &out], 2);
    assert!(
        errors.contains("utilization") && errors.contains("mine.toml"),
        "{errors}"
    );
}

#[test]
fn verdicts_are_kept_in_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("a path of text")
            .to_owned()
    };
    let (out, table) = (path("out"), path("verdicts.csv"));
    let run = |code| {
        let arguments = ["reproduce", "sqf-fig4", "--quick", "--seeds", "1", "--out", &out];
        let place = ["--verdicts", &table, "--commit", "1a2b3c4"];
        ends(&[arguments.as_slice(), place.as_slice()].concat(), code)
    };
    std::fs::write(&table, "nothing\n").expect("it is written");
    let (_, errors) = run(2);
    assert!(errors.contains("not a table of verdicts"), "{errors}");
    let other = "mine,,1 of 1: 1 reproduced,fairgate reproduce mine.toml\nmine,low,reproduced,1 < 2\n";
    std::fs::write(&table, format!("experiment,claim,verdict,found\n{other}")).expect("it is written");
    let (text, _) = run(0);
    assert!(text.contains("reproduced if  n = 20: the mean time"), "{text}");
    assert!(text.contains("Instead: n = 20: with N(t) Poisson"), "{text}");
    let written = std::fs::read_to_string(&table).expect("it is there");
    let verdicts = written.strip_prefix("experiment,claim,verdict,found\n");
    let verdicts = verdicts.and_then(|rows| rows.strip_prefix(other));
    let verdicts = verdicts.unwrap_or_else(|| panic!("{written}"));
    let run = "sqf-fig4,,\"3 of 3: 2 reproduced, 1 reproduced if\",fairgate-lab reproduce sqf-fig4 --seeds 1 \
               --quick at commit 1a2b3c4\n";
    assert!(verdicts.starts_with(run), "{verdicts}");
    for verdict in [",reproduced if,", ",reproduced,", ",not so,"] {
        assert!(verdicts.contains(verdict), "{verdict} in {verdicts}");
    }
}

#[test]
fn theory_prints_formulas_beside_measured_values() {
    let result = json(&["theory", "md1", "--load", "0.8", "--seeds", "2", "--json"], 0);
    let row = &result["rows"][0]["values"];
    let (formula, measured) = (
        row[0]["value"].as_f64().unwrap(),
        row[1]["value"].as_f64().unwrap(),
    );
    assert!((measured / formula - 1.0).abs() < 0.05, "{formula} {measured}");
    let (_, errors) = ends(&["theory", "mm1", "--load", "1.2"], 2);
    assert!(errors.contains("the load is 1.2"), "{errors}");
}

/// CAKE stands beside the disciplines of a file of a user's own, and no claim is judged by it.
#[test]
fn other_disciplines_stand_beside_those_of_an_experiment() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let dimension = "[[experiment.dimension]]\nname = \"queue\"\ncases = [{ name = \"fifo\", set = { \
                     \"queue.line\" = { discipline = \"fifo\" } } }]\n[queue.line]\ndiscipline = \
                     \"fifo\"\n[simulate]\n";
    let file = OWN
        .replace("[simulate]\n", dimension)
        .replace("b = \"right\"\nrate", "b = \"right\"\nqueue_a = \"line\"\nrate");
    let text = file.replace("the network of the file", "*");
    std::fs::write(path("mine.toml"), text).expect("it is written");
    std::fs::write(path("other.toml"), OWN).expect("it is written");
    let (mine, other, out) = (path("mine.toml"), path("other.toml"), path("out"));
    let with = |file: &str, code| {
        let arguments = [
            "reproduce",
            file,
            "--seeds",
            "1",
            "--out",
            &out,
            "--also",
            "cake,dualpi2",
        ];
        ends(&arguments, code)
    };
    let (text, _) = with(&mine, 0);
    for part in [
        "utilisation of left->right  cake",
        "utilisation of left->right  dualpi2",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("(cake)"), "{text}");
    let (_, errors) = with(&other, 2);
    assert!(
        errors.contains("no dimension of this experiment is about disciplines"),
        "{errors}"
    );
}
