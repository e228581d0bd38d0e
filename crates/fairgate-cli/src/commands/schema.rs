//! `fairgate schema`: what may stand in a file, for editors that complete and check TOML.
//!
//! It is made from the descriptions by which files are read. It allows what a file may have, and does not
//! know the rules between values: `fairgate check` does.

use fairgate_config::{Children, Entry, ParameterInfo, Registry, Section, Shape, Unit};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};

/// Print a JSON Schema of configuration files, for editors
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate schema > fairgate.schema.json

Then the first line of a file `#:schema ./fairgate.schema.json` makes editors with taplo (Even Better TOML)
complete and explain its keys. What does not go together is found by `fairgate check` alone.")]
pub(crate) struct Args {}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed {
    json_schema: Value,
}

pub(crate) fn run(_args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let json_schema = schema(registry);
    match format {
        Format::Text => output::exact(&format!("{json_schema:#}\n"))?,
        Format::Json => output::json("schema", &Printed { json_schema })?,
    }
    Ok(Outcome::Yes)
}

fn schema(registry: &Registry) -> Value {
    let mut shared = Shared::default();
    let sections = registry.sections();
    let sections = sections.map(|section| (section.name().to_owned(), tables(section, &mut shared)));
    let mut sections_of_files: Map<String, Value> = sections.collect();
    let queue = json!({
        "description": "Trees of disciplines: docs/configuration.md",
        "type": "object",
        "additionalProperties": { "$ref": "#/definitions/discipline" },
    });
    sections_of_files.insert("queue".to_owned(), queue);
    let disciplines: Vec<Value> = registry.iter().map(discipline).collect();
    let mut definitions = shared.definitions();
    definitions.insert("discipline".to_owned(), json!({ "anyOf": disciplines }));
    definitions.insert("disciplines".to_owned(), json!({ "enum": names(registry) }));
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of Fairgate",
        "type": "object",
        "properties": sections_of_files,
        "additionalProperties": false,
        "definitions": definitions,
    })
}

/// The tables that a key may have instead of a value, each once: all random times have the same one.
#[derive(Default)]
struct Shared(Vec<(String, Value)>);

impl Shared {
    /// Returns a reference to a table. `name` is that of the first key that has it.
    fn reference(&mut self, name: &str, table: Value) -> Value {
        let index = self.0.iter().position(|(_, known)| *known == table);
        let index = index.unwrap_or_else(|| {
            let name = format!("{name}-{}", self.0.len());
            self.0.push((name, table));
            self.0.len() - 1
        });
        json!({ "$ref": format!("#/definitions/{}", self.0[index].0) })
    }

    fn definitions(self) -> Map<String, Value> {
        self.0.into_iter().collect()
    }
}

/// Returns the names of all disciplines, each once: some have two entries.
fn names(registry: &Registry) -> Vec<&'static str> {
    let mut names: Vec<&str> = registry.iter().map(|entry| entry.about().name).collect();
    names.dedup();
    names
}

/// Returns the schema of a section: of a table, of tables with names, or of a list of tables.
fn tables(section: &Section, shared: &mut Shared) -> Value {
    let mut table = table(section, shared);
    if let Some(info) = section.shorthand() {
        let table_instead = shared.reference(section.name(), table);
        table = json!({ "anyOf": [parameter(&info), table_instead] });
    }
    match section.shape() {
        Shape::One => {
            table["description"] = section.about().into();
            table
        }
        Shape::Named => json!({
            "description": section.about(),
            "type": "object",
            "additionalProperties": table,
        }),
        Shape::List => json!({ "description": section.about(), "type": "array", "items": table }),
    }
}

fn table(section: &Section, shared: &mut Shared) -> Value {
    let keys = section.keys();
    let mut properties = properties(&keys);
    let within = section.within().iter();
    properties.extend(within.map(|inner| (inner.name().to_owned(), tables(inner, shared))));
    let mut required = required(&keys);
    let tables = section.within().iter().filter(|inner| inner.is_required());
    required.extend(tables.map(Section::name));
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": section.is_open(),
    })
}

/// Returns the names of those that must be given.
fn required(infos: &[ParameterInfo]) -> Vec<&'static str> {
    let required = infos.iter().filter(|info| info.default.is_none());
    required.map(|info| info.name).collect()
}

fn properties(infos: &[ParameterInfo]) -> Map<String, Value> {
    infos
        .iter()
        .map(|info| (info.name.to_owned(), parameter(info)))
        .collect()
}

fn discipline(entry: &dyn Entry) -> Value {
    let about = entry.about();
    let mut properties = properties(&entry.parameters());
    let mut add = |name: &str, schema: Value| properties.insert(name.to_owned(), schema);
    add(
        "discipline",
        json!({ "const": about.name, "description": about.summary }),
    );
    add(
        "handle",
        json!({ "description": "The number by which packets name it" }),
    );
    add(
        "estimator",
        json!({ "description": "How its rate is measured", "type": "string" }),
    );
    match about.children {
        Children::None => {}
        Children::Inner | Children::InnerOrQueue => {
            add("inner", json!({ "$ref": "#/definitions/discipline" }));
        }
        children => {
            add(
                "class",
                json!({ "type": "array", "items": class(entry, children.are_a_tree()) }),
            );
        }
    }
    if entry.takes_filters() {
        let filter =
            json!({ "type": "object", "properties": { "class": { "description": "Where its packets go" } } });
        add("filter", json!({ "type": "array", "items": filter }));
        add(
            "default",
            json!({ "description": "The class of packets that no filter takes" }),
        );
    }
    let mut required = required(&entry.parameters());
    required.insert(0, "discipline");
    json!({
        "title": about.name,
        "description": about.when,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns a class of a discipline. It also has the parameters of the discipline in it, which may be any.
fn class(entry: &dyn Entry, is_of_tree: bool) -> Value {
    let mut properties = properties(&entry.class_parameters());
    let number = |about: &str| json!({ "type": "integer", "minimum": 1, "description": about });
    properties.insert("id".to_owned(), number("Its number"));
    if is_of_tree {
        properties.insert("parent".to_owned(), number("The class above it"));
    }
    properties.insert(
        "discipline".to_owned(),
        json!({ "$ref": "#/definitions/disciplines" }),
    );
    properties.insert("inner".to_owned(), json!({ "$ref": "#/definitions/discipline" }));
    json!({ "type": "object", "properties": properties, "required": ["id"] })
}

fn parameter(info: &ParameterInfo) -> Value {
    let (least, most) = (*info.range.start(), *info.range.end());
    let integer = |least: i128, most: u64| json!({ "type": "integer", "minimum": least, "maximum": most });
    let list = |most: usize, least: usize| {
        let items = json!({ "type": "integer" });
        json!({ "type": "array", "items": items, "minItems": least, "maxItems": most })
    };
    let mut schema = match info.unit {
        Unit::Count(_) => integer(least.into(), most),
        Unit::Signed(_, least) => integer(least.into(), most),
        Unit::Bytes | Unit::Rate | Unit::Amount(_) => json!({ "type": ["string", "integer"] }),
        Unit::Probability => json!({ "type": ["number", "string"] }),
        Unit::Flag => json!({ "type": "boolean" }),
        Unit::Choice(words) => json!({ "enum": words }),
        Unit::List(length) => list(length, length),
        Unit::Numbers(most) | Unit::SignedNumbers(most) => list(most, 0),
        Unit::CountOrNumbers(_) => {
            let items = integer(least.into(), most);
            json!({ "anyOf": [items, { "type": "array", "items": items }] })
        }
        Unit::CountOrTexts(_) => {
            let texts = json!({ "type": "array", "items": { "type": "string" } });
            json!({ "anyOf": [integer(least.into(), most), texts] })
        }
        Unit::Decimal(_, least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Unit::Decimals(_) => {
            let number = json!({ "type": "number" });
            json!({ "anyOf": [number, { "type": "array", "items": number }] })
        }
        Unit::TimeOrFalse => json!({ "anyOf": [{ "type": "string" }, { "const": false }] }),
        Unit::Dscp => json!({ "type": ["string", "integer"] }),
        Unit::Several(of, least, most) => {
            let types: &[&str] = match of {
                Unit::Time => &["string"],
                _ => &["string", "integer"],
            };
            let items = json!({ "type": types });
            json!({ "type": "array", "items": items, "minItems": least, "maxItems": most })
        }
        Unit::Schedule => {
            let part = json!({ "type": ["string", "integer"] });
            let phase = json!({ "type": "array", "items": part, "minItems": 2, "maxItems": 2 });
            json!({ "type": "array", "items": phase })
        }
        Unit::Texts(_, most) => {
            let items = json!({ "type": "string" });
            json!({ "type": "array", "items": items, "maxItems": most })
        }
        // Times, texts and curves.
        _ => json!({ "type": "string" }),
    };
    if info.optional {
        schema = json!({ "anyOf": [schema, { "const": "none" }] });
    }
    let members = schema.as_object_mut().expect("it is an object");
    let default = info.shown_default();
    let text = format!(
        "{} ({}; {})",
        info.doc,
        info.allowed(),
        default.map_or("required".to_owned(), |default| format!("default: {default}"))
    );
    members.insert("description".to_owned(), text.into());
    schema
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use boon::{Compiler, SchemaIndex, Schemas};
    use fairgate_config::Document;

    use super::*;

    struct Checker {
        schemas: Schemas,
        index: SchemaIndex,
    }

    impl Checker {
        fn new() -> Checker {
            let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
            compiler
                .add_resource(
                    "fairgate.json",
                    schema(&crate::with_sections(&Registry::builtin())),
                )
                .unwrap();
            let index = compiler.compile("fairgate.json", &mut schemas).unwrap();
            Checker { schemas, index }
        }

        fn allows(&self, text: &str) -> bool {
            let table: toml::Table = text.parse().unwrap();
            let value = serde_json::to_value(table).unwrap();
            self.schemas.validate(&value, self.index).is_ok()
        }
    }

    #[test]
    fn the_examples_are_allowed() {
        let checker = Checker::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let text = fs::read_to_string(&path).unwrap();
                assert!(checker.allows(&text), "{}", path.display());
                count += 1;
            }
        }
        assert!(count > 5);
    }

    /// Whatever block of the documentation is a valid file is allowed.
    #[test]
    fn what_the_documentation_shows_is_allowed() {
        let checker = Checker::new();
        let registry = crate::with_sections(&Registry::builtin());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let page = fs::read_to_string(&path).unwrap();
            for block in page.split("```toml\n").skip(1) {
                let block = block.split("```").next().unwrap();
                if Document::parse_with("block.toml", block, &registry).is_ok() {
                    assert!(checker.allows(block), "{}:\n{block}", path.display());
                    count += 1;
                }
            }
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn mistakes_are_not_allowed() {
        let checker = Checker::new();
        for wrong in [
            "[subscribers]\ndown = \"1gbit\"\n",
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nothers = { down = \"1mbit\" }\n",
            "[plans.home]\ndwon = \"1gbit\"\n",
            "[plans.home]\ndown_burst = { rate = \"1gbit\" }\n",
            "[sweep]\nseeds = -1\n",
            "[sweep]\nmeasure = \"rows\"\n",
            "[simulate]\nseed = 1\n",
            "[simulate]\nduration = \"1s\"\nmeasure = [\"0s\"]\n",
            "[simulate]\nduration = \"1s\"\n[[simulate.capture]]\ninterface = \"a->b\"\n",
            "[runn]\nleft = \"a\"\n",
            "[run]\nlefft = \"a\"\n",
            "[run]\nframes = 1\n",
            "[run]\noffloads = \"of\"\n",
            "[run.autorate]\ntuning = { treshold = \"20ms\" }\n",
            "[queue.a]\ndiscipline = \"fq_code\"\n",
            "[queue.a]\ndiscipline = \"tbf\"\nrate = \"1mbit\"\n",
            "[queue.a]\ndiscipline = \"fq_codel\"\ntargett = \"5ms\"\n",
            "[queue.a]\ndiscipline = \"drr\"\n[[queue.a.class]]\nquantum = 1500\n",
        ] {
            assert!(!checker.allows(wrong), "{wrong}");
        }
        let link = "[simulate]\nduration = \"1s\"\n[[simulate.link]]\na = \"a\"\n";
        assert!(!checker.allows(link), "{link}");
        assert!(checker.allows(&format!("{link}b = \"b\"\n")));
        for wrong in [
            "jiter = \"1ms\"",
            "jitter = { mean = \"1s\" }",
            "loss = \"1%\"",
            "loss = { p = 0.1 }",
            "loss = { gilbert_elliott = { p = 0.1 } }",
            "workers = 65",
        ] {
            assert!(!checker.allows(&format!("{link}b = \"b\"\n{wrong}\n")), "{wrong}");
        }
    }
}
