//! The JSON paths of printer columns: `.spec.replicas`,
//! `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::{Map, Value};

/// The maximum nesting depth of filters.
const MAX_DEPTH: usize = 8;

/// A JSON path of Kubernetes, as in printer columns and in kubectl's `-o jsonpath`.
///
/// ```
/// use kube_embedded::table::JsonPath;
/// use serde_json::json;
///
/// let path = JsonPath::parse(".spec.containers[?(@.name=='app')].image").expect("the text is a path");
/// let pod = json!({"spec": {"containers": [{"name": "app", "image": "nginx"}, {"name": "log", "image": "log"}]}});
/// assert_eq!(path.find(&pod), [&json!("nginx")]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath(Vec<Step>);

/// The number of values that the paths of one row may still visit.
///
/// Each `..` of a path visits all descendants of all values found so far, so a chain of them takes
/// exponential time.
#[derive(Debug)]
pub(super) struct Visits(usize);

/// The paths of a row visit too many values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyVisits;

impl Visits {
    pub(super) fn of_a_row() -> Self {
        Self(100_000)
    }

    fn count(&mut self, values: usize) -> Result<(), TooManyVisits> {
        self.0 = self.0.checked_sub(values).ok_or(TooManyVisits)?;
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// All children of an object or a list.
    All,
    /// All descendants.
    Deep,
    /// Start, end (exclusive) and step.
    Slice(Option<i64>, Option<i64>, i64),
    Index(i64),
    /// Several steps; their results are concatenated.
    Union(Vec<Step>),
    Filter(Operand, Comparison, Operand),
    /// Elements for which the path selects a value.
    Has(JsonPath),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

impl JsonPath {
    /// Parses a path. `None` if it is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let mut parser = Parser { rest: text.strip_prefix('$').unwrap_or(text), depth: 0 };
        let path = parser.path()?;
        parser.rest.trim().is_empty().then_some(path)
    }

    /// All selected values; none if finding them takes more than 100,000 steps.
    #[must_use]
    pub fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        self.all(root, &mut Visits::of_a_row()).unwrap_or_default()
    }

    /// The first selected value.
    ///
    /// # Errors
    ///
    /// If finding it takes more visits than are left.
    pub(super) fn first<'v>(&self, root: &'v Value, visits: &mut Visits) -> Result<Option<&'v Value>, TooManyVisits> {
        Ok(self.all(root, visits)?.into_iter().next())
    }

    fn all<'v>(&self, root: &'v Value, visits: &mut Visits) -> Result<Vec<&'v Value>, TooManyVisits> {
        let mut found = vec![root];
        for step in &self.0 {
            let mut next = Vec::new();
            for value in found {
                step.find(value, &mut next, visits)?;
            }
            found = next;
        }
        Ok(found)
    }
}

impl Step {
    /// Appends the values that this step selects of a value.
    fn find<'v>(&self, value: &'v Value, found: &mut Vec<&'v Value>, visits: &mut Visits) -> Result<(), TooManyVisits> {
        visits.count(1)?;
        match self {
            Self::Field(name) => found.extend(value.get(name)),
            Self::All => children(value, visits)?.for_each(|child| found.push(child)),
            Self::Deep => {
                found.push(value);
                for child in children(value, visits)? {
                    self.find(child, found, visits)?;
                }
            }
            Self::Index(at) => {
                let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                found.extend(usize::try_from(absolute(*at, list.len())).ok().and_then(|at| list.get(at)));
            }
            Self::Slice(from, to, step) => {
                let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let bound = |at: i64| usize::try_from(absolute(at, list.len())).unwrap_or(0).min(list.len());
                let (from, to) = (from.map_or(0, bound), to.map_or(list.len(), bound));
                let step = usize::try_from(*step).unwrap_or(1).max(1);
                let slice = list.get(from..to).unwrap_or_default();
                visits.count(slice.len())?;
                found.extend(slice.iter().step_by(step));
            }
            Self::Union(steps) => {
                for step in steps {
                    step.find(value, found, visits)?;
                }
            }
            Self::Has(path) => {
                for child in children(value, visits)? {
                    if path.first(child, visits)?.is_some() {
                        found.push(child);
                    }
                }
            }
            Self::Filter(left, comparison, right) => {
                for child in children(value, visits)? {
                    if let (Some(left), Some(right)) = (left.value(child, visits)?, right.value(child, visits)?)
                        && comparison.holds(left, right)
                    {
                        found.push(child);
                    }
                }
            }
        }
        Ok(())
    }
}

fn children<'v>(
    value: &'v Value,
    visits: &mut Visits,
) -> Result<impl Iterator<Item = &'v Value> + use<'v>, TooManyVisits> {
    let (list, map) = (value.as_array(), value.as_object());
    visits.count(list.map_or(0, Vec::len) + map.map_or(0, Map::len))?;
    Ok(list.into_iter().flatten().chain(map.into_iter().flat_map(Map::values)))
}

/// Resolves a negative index, which counts from the end.
fn absolute(at: i64, length: usize) -> i64 {
    if at < 0 { at.saturating_add_unsigned(length as u64) } else { at }
}

impl Operand {
    fn value<'v>(&'v self, here: &'v Value, visits: &mut Visits) -> Result<Option<&'v Value>, TooManyVisits> {
        match self {
            Self::Path(path) => path.first(here, visits),
            Self::Literal(value) => Ok(Some(value)),
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
            }
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            _ => None,
        };
        order.is_some_and(|order| match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        })
    }
}

struct Parser<'t> {
    rest: &'t str,
    /// The number of filters around the rest.
    depth: usize,
}

impl<'t> Parser<'t> {
    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest.strip_prefix(prefix);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn path(&mut self) -> Option<JsonPath> {
        let mut steps = Vec::new();
        loop {
            if self.eat("..") {
                steps.push(Step::Deep);
                if !self.rest.starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.eat(".") {
                if self.rest.starts_with('[') || self.rest.is_empty() {
                    continue;
                }
                steps.push(self.field()?);
            } else if self.eat("[") {
                steps.push(self.brackets()?);
            } else {
                return Some(JsonPath(steps));
            }
        }
    }

    fn field(&mut self) -> Option<Step> {
        if self.eat("*") {
            return Some(Step::All);
        }
        let mut name = String::new();
        let mut characters = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => name.push(characters.next()?.1),
                '.' | '[' | ']' | ')' | ' ' | '=' | '!' | '<' | '>' | '{' | '}' => {
                    end = at;
                    break;
                }
                other => name.push(other),
            }
        }
        self.rest = &self.rest[end..];
        (!name.is_empty()).then_some(Step::Field(name))
    }

    /// Parses the content of brackets, after the opening bracket.
    fn brackets(&mut self) -> Option<Step> {
        if self.eat("?(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return None;
            }
            let step = self.filter()?;
            self.depth -= 1;
            return (self.eat(")") && self.eat("]")).then_some(step);
        }
        let end = self.closing()?;
        let (inside, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        let mut steps = Vec::new();
        for part in parts(inside) {
            let part = part.trim();
            steps.push(match part {
                "*" => Step::All,
                quoted if quoted.starts_with(['\'', '"']) => Step::Field(unquote(quoted)?),
                slice if slice.contains(':') => {
                    let bounds: Vec<&str> = slice.split(':').map(str::trim).collect();
                    let bound = |at: usize| match bounds.get(at).copied().unwrap_or_default() {
                        "" => Some(None),
                        text => text.parse().ok().map(Some),
                    };
                    Step::Slice(bound(0)?, bound(1)?, bound(2)?.unwrap_or(1))
                }
                index => Step::Index(index.parse().ok()?),
            });
        }
        if steps.len() == 1 { steps.pop() } else { Some(Step::Union(steps)) }
    }

    /// The offset of the closing bracket, ignoring quoted ones.
    fn closing(&self) -> Option<usize> {
        let mut quote = None;
        for (at, character) in self.rest.char_indices() {
            match (quote, character) {
                (None, ']') => return Some(at),
                (None, '\'' | '"') => quote = Some(character),
                (Some(open), close) if open == close => quote = None,
                _ => {}
            }
        }
        None
    }

    fn filter(&mut self) -> Option<Step> {
        let left = self.operand()?;
        self.rest = self.rest.trim_start();
        let comparisons = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        match (comparisons.into_iter().find(|(sign, _)| self.eat(sign)), left) {
            (Some((_, comparison)), left) => {
                let right = self.operand()?;
                self.rest = self.rest.trim_start();
                Some(Step::Filter(left, comparison, right))
            }
            (None, Operand::Path(path)) => Some(Step::Has(path)),
            (None, Operand::Literal(_)) => None,
        }
    }

    fn operand(&mut self) -> Option<Operand> {
        self.rest = self.rest.trim_start();
        if self.eat("@") {
            return self.path().map(Operand::Path);
        }
        if let Some(quote) = self.rest.chars().next().filter(|quote| matches!(quote, '\'' | '"')) {
            let end = self.rest[1..].find(quote)? + 2;
            let (quoted, rest) = self.rest.split_at(end);
            self.rest = rest;
            return unquote(quoted).map(|text| Operand::Literal(text.into()));
        }
        let end = self.rest.find([')', ' ', '=', '!', '<', '>']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        serde_json::from_str(word).ok().map(Operand::Literal)
    }
}

/// Splits at commas that are not quoted.
fn parts(text: &str) -> Vec<&str> {
    let mut quote = None;
    text.split(|character: char| {
        match (quote, character) {
            (None, ',') => return true,
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        false
    })
    .collect()
}

fn unquote(text: &str) -> Option<String> {
    let quote = text.chars().next()?;
    Some(text.strip_prefix(quote)?.strip_suffix(quote)?.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(path: &str, value: &Value) -> Option<Value> {
        let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path} is a path"));
        parsed.first(value, &mut Visits::of_a_row()).expect("the path is short").cloned()
    }

    #[test]
    fn paths_lead_where_they_say() {
        let value = json!({
            "spec": {"size": 3, "a.b": "dotted", "list": ["x", "y", "z"]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "n": 5}]}
        });
        for (path, led) in [
            (".spec.size", json!(3)),
            ("{.spec.size}", json!(3)),
            (".spec.a\\.b", json!("dotted")),
            (".spec['a.b']", json!("dotted")),
            (".spec.list[1]", json!("y")),
            (".spec.list[-1]", json!("z")),
            (".spec.list[1:]", json!("y")),
            (".spec.list[-1:]", json!("z")),
            (".spec.list[2,0]", json!("z")),
            (".spec.list[*]", json!("x")),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type == 'Ready')].status", json!("True")),
            (".status.conditions[?(@.n>4)].type", json!("Other")),
            (".status.conditions[?(@.n)].type", json!("Other")),
            ("..n", json!(5)),
        ] {
            assert_eq!(first(path, &value), Some(led), "{path}");
        }
        for path in [".spec.none", ".spec.list[7]", ".spec.list[-9]", ".status.conditions[?(@.type==\"No\")].status"] {
            assert_eq!(first(path, &value), None, "{path}");
        }
    }

    #[test]
    fn a_chain_of_descendants_ends_at_the_limit_of_visits() {
        let mut value = json!({"x": 1});
        for _ in 0..6 {
            value = json!({"a": value, "b": value, "c": value});
        }
        let path = JsonPath::parse(&"..[*]".repeat(20)).expect("the text is a path");
        assert_eq!(path.first(&value, &mut Visits::of_a_row()), Err(TooManyVisits));
        assert_eq!(first("..x", &value), Some(json!(1)));
    }

    #[test]
    fn filters_are_nested_up_to_a_limit() {
        let nested = |depth| format!(".a{}@.b{}", "[?(".repeat(depth), ")]".repeat(depth));
        assert_eq!(JsonPath::parse(&nested(2)), None, "a filter begins with @");
        let nested = |depth| format!(".a{}{}", "[?(@.b".repeat(depth), ")]".repeat(depth));
        assert!(JsonPath::parse(&nested(MAX_DEPTH)).is_some());
        for depth in [MAX_DEPTH + 1, 100_000] {
            assert_eq!(JsonPath::parse(&nested(depth)), None, "{depth}");
        }
    }

    #[test]
    fn what_is_no_path_is_none() {
        for text in [".spec[", ".spec[x]", ".a[?(@.b==)]", "spec", ".a[?(1)]", ".a)"] {
            assert_eq!(JsonPath::parse(text), None, "{text}");
        }
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::{fuzz, recorded};

    #[test]
    fn any_path_is_followed_or_refused() {
        let (bodies, _) = recorded();
        let objects: Vec<Value> = bodies.iter().map(|body| serde_json::from_slice(body).expect("JSON")).collect();
        let pieces = [
            ".",
            "..",
            "*",
            "[",
            "]",
            "[*]",
            "[0]",
            "[-1:]",
            "[1:2:3]",
            "[?(",
            ")]",
            "@",
            "@.name",
            "==",
            "<",
            "\"x\"",
            "'",
            ",",
            "\\",
            "{",
            "}",
            "$",
            ".metadata",
            ".name",
            ".spec",
            ".containers",
            "..name",
            "é",
            " ",
            "9223372036854775807",
        ];
        fuzz(1000, |source| {
            let text = match source.below(10) {
                0 => "[?(@.a".repeat(source.below(20_000)),
                1 => "..[*]".repeat(source.below(100)),
                _ => source.text(&pieces, 12),
            };
            if let Some(path) = JsonPath::parse(&text) {
                drop(path.first(source.choose(&objects), &mut Visits::of_a_row()));
            }
        });
    }
}
