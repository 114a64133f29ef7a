//! The JSON paths of printer columns: `.spec.replicas`,
//! `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

/// A parsed JSON path, which can select several values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath(Vec<Step>);

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
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let mut parser = Parser { rest: text.strip_prefix('$').unwrap_or(text) };
        let path = parser.path()?;
        parser.rest.trim().is_empty().then_some(path)
    }

    /// The first selected value.
    pub(super) fn first<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.find(root).into_iter().next()
    }

    fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        self.0.iter().fold(vec![root], |found, step| found.into_iter().flat_map(|value| step.find(value)).collect())
    }
}

impl Step {
    fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::All => children(value),
            Self::Deep => {
                let below = children(value).into_iter().flat_map(|child| self.find(child));
                std::iter::once(value).chain(below).collect()
            }
            Self::Index(at) => {
                let Some(list) = value.as_array() else { return Vec::new() };
                usize::try_from(absolute(*at, list.len())).ok().and_then(|at| list.get(at)).into_iter().collect()
            }
            Self::Slice(from, to, step) => {
                let Some(list) = value.as_array() else { return Vec::new() };
                let bound = |at: i64| usize::try_from(absolute(at, list.len())).unwrap_or(0).min(list.len());
                let (from, to) = (from.map_or(0, bound), to.map_or(list.len(), bound));
                let step = usize::try_from(*step).unwrap_or(1).max(1);
                list.get(from..to).unwrap_or_default().iter().step_by(step).collect()
            }
            Self::Union(steps) => steps.iter().flat_map(|step| step.find(value)).collect(),
            Self::Has(path) => children(value).into_iter().filter(|child| !path.find(child).is_empty()).collect(),
            Self::Filter(left, comparison, right) => children(value)
                .into_iter()
                .filter(|child| match (left.value(child), right.value(child)) {
                    (Some(left), Some(right)) => comparison.holds(left, right),
                    _ => false,
                })
                .collect(),
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

/// Resolves a negative index, which counts from the end.
fn absolute(at: i64, length: usize) -> i64 {
    if at < 0 { at.saturating_add_unsigned(length as u64) } else { at }
}

impl Operand {
    fn value<'v>(&'v self, here: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Path(path) => path.first(here),
            Self::Literal(value) => Some(value),
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
            let step = self.filter()?;
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
        JsonPath::parse(path).unwrap_or_else(|| panic!("{path} is a path")).first(value).cloned()
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
    fn what_is_no_path_is_none() {
        for text in [".spec[", ".spec[x]", ".a[?(@.b==)]", "spec", ".a[?(1)]", ".a)"] {
            assert_eq!(JsonPath::parse(text), None, "{text}");
        }
    }
}
