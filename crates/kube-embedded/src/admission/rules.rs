//! Validation of built-in kinds by a table of rules, `data/rules.txt`, with the real server's error
//! messages.
//!
//! The table says what a field must be; `checks` are the rules about several fields, which it
//! names.

mod certificates;
mod checks;
mod condition;
pub(crate) mod formats;
mod path;
mod pods;
mod rule;
mod running_pods;

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde_json::Value;

use self::condition::Condition;
use self::path::{Path, join};
use self::rule::{Field, Rule};
use crate::http::status::Cause;
use crate::kinds::schema::{Leaf, Shape, Struct, Structs};
use crate::kinds::{Kind, Part, Schema};

/// The validation errors of a new object (`old` is `None`) or of an update, of a subresource if
/// `part` names one.
pub(crate) fn problems(kind: &Kind, new: &Value, old: Option<&Value>, part: Option<Part>) -> Vec<Cause> {
    let Schema::Typed(of) = kind.schema else { return Vec::new() };
    let mut causes = Vec::new();
    let part = part.map_or("", Part::as_str);
    Walk { table: Table::get(), kind: &kind.kind, part, root: new, causes: &mut causes }.structure(of, new, old, "");
    causes
}

/// A value of a struct, in its object.
#[derive(Clone, Copy)]
struct Site<'v> {
    /// The kind of the object.
    kind: &'v str,
    /// The subresource that is written, if any.
    part: &'v str,
    root: &'v Value,
    of: &'static Struct,
    value: &'v Value,
    /// The old value in an update, if there was one.
    old: Option<&'v Value>,
    /// The path of the value in the object; empty for the object itself.
    field: &'v str,
    is_update: bool,
}

impl Site<'_> {
    /// The path of a field of the value.
    fn at(&self, field: &str) -> String {
        join(self.field, field)
    }

    /// A field of the value, as in a message.
    fn shown(&self, field: &str) -> String {
        let shape = self.of.field(field).map(|(_, field)| field.shape);
        Field { path: field, value: &self.value[field], old: None, shape }.shown()
    }
}

/// A line of the table.
#[derive(Debug)]
struct Line {
    path: Path,
    /// Where problems are reported, relative to the struct, if not at the path.
    place: Option<&'static str>,
    rule: Rule,
    condition: Condition,
}

/// The rules by Go type.
#[derive(Debug)]
struct Table {
    rules: HashMap<&'static str, Vec<Line>>,
    /// The Go types that have rules, or contain values of types that have.
    reaching: HashSet<&'static str>,
}

impl Table {
    fn get() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| Table::parse(include_str!("../../data/rules.txt")))
    }

    fn parse(text: &'static str) -> Table {
        let mut rules: HashMap<&'static str, Vec<Line>> = HashMap::new();
        let mut of = "";
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                of = name;
            } else {
                rules.entry(of).or_default().push(Line::parse(line));
            }
        }
        let mut reaching: HashSet<&'static str> = rules.keys().copied().collect();
        loop {
            let before = reaching.len();
            for each in Structs::get().all() {
                let reaches = |field: &crate::kinds::schema::Field| {
                    field.shape.inner().is_some_and(|inner| reaching.contains(inner.go_type()))
                };
                if each.fields().iter().any(reaches) {
                    reaching.insert(each.go_type());
                }
            }
            if reaching.len() == before {
                return Table { rules, reaching };
            }
        }
    }
}

impl Line {
    fn parse(line: &'static str) -> Line {
        let mut columns = line.split('\t');
        let path = columns.next().unwrap_or_default();
        let rule = columns.next().expect("a line has a path and a rule");
        let (path, place) = path.split_once('@').map_or((path, None), |(path, place)| (path, Some(place)));
        Line {
            path: Path::parse(path),
            place,
            rule: Rule::parse(rule),
            condition: Condition::parse(columns.next().unwrap_or_default()),
        }
    }

    fn evaluate(&self, site: &Site<'_>, causes: &mut Vec<Cause>) {
        if !self.condition.holds(site) {
            return;
        }
        let shape = self.path.shape(site.of);
        self.path.visit(site.value, site.old, &mut |place, value, old| {
            let place = self.place.map_or(place, |place| place.trim_start_matches('.'));
            self.rule.evaluate(site, &Field { path: &site.at(place), value, old, shape }, causes);
        });
    }
}

/// A walk through an object along the structs of its kind.
struct Walk<'w> {
    table: &'static Table,
    kind: &'w str,
    part: &'w str,
    root: &'w Value,
    causes: &'w mut Vec<Cause>,
}

impl Walk<'_> {
    fn structure(&mut self, of: &'static Struct, value: &Value, old: Option<&Value>, field: &str) {
        if !value.is_object() || !self.table.reaching.contains(of.go_type()) {
            return;
        }
        let is_update = old.is_some();
        let old = old.filter(|old| old.is_object());
        let site = Site { kind: self.kind, part: self.part, root: self.root, of, value, old, field, is_update };
        for line in self.table.rules.get(of.go_type()).into_iter().flatten() {
            line.evaluate(&site, self.causes);
        }
        for each in of.fields() {
            let (Some(inner), Some(value)) = (each.shape.inner(), value.get(each.name)) else { continue };
            let field = join(field, each.name);
            // In an update a new value has an old one, if only null.
            let old = is_update.then(|| old.and_then(|old| old.get(each.name)).unwrap_or(&Value::Null));
            match (each.shape, value) {
                (Shape::One(Leaf::Struct(_)), value) => self.structure(inner, value, old, &field),
                (Shape::List(_), Value::Array(items)) => {
                    for (at, item) in items.iter().enumerate() {
                        let old = old.map(|old| &old[at]);
                        self.structure(inner, item, old, &format!("{field}[{at}]"));
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is about fields that exist, so that no rule is dead.
    #[test]
    fn every_path_of_the_table_leads_to_a_field() {
        for (go_type, lines) in &Table::get().rules {
            let structs: Vec<_> = Structs::get().all().iter().filter(|each| each.go_type() == *go_type).collect();
            assert!(!structs.is_empty(), "{go_type} is a struct");
            for line in lines {
                assert!(structs.iter().any(|of| line.path.leads_somewhere(of)), "{go_type}: {:?}", line.path);
                for path in line.condition.paths() {
                    assert!(structs.iter().any(|of| path.leads_somewhere(of)), "{go_type}: {path:?}");
                }
            }
        }
    }
}
