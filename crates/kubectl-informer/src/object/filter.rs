//! CEL filter expressions over objects.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cel::common::value::CowVal;
use cel::context::VariableResolver;
use cel::objects::{Key, Map};
use cel::{Context, Env, Program};
use serde_json::Value;

use super::quantity::quantity;

/// A compiled CEL expression that is true or false for an object.
#[derive(Clone)]
pub(crate) struct Filter {
    text: Arc<str>,
    program: Arc<Program>,
    /// Variables that the expression references.
    variables: Arc<[String]>,
    /// Whether the expression may be nested so deeply that it needs a stack of its own.
    needs_large_stack: bool,
}

/// The result of the expression for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Evaluation {
    pub(crate) outcome: Outcome,
    /// Variables that were read and are no field of the object.
    pub(crate) absent: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    True,
    False,
    /// The expression reads a field that the object does not have: neither true nor false.
    NoSuchField(String),
}

/// The standard library, with optional access: `a.?b.orValue(c)`.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Maximum number of operators and brackets, those in strings included. Each can be a level of
/// nesting, and the stack is limited.
const MAX_OPERATORS: usize = 100;
/// With more operators than this, an expression is evaluated on a thread of its own, which takes
/// longer than most evaluations.
const FEW_OPERATORS: usize = 15;
/// Stack size in bytes for the parser and for nested expressions, which use tens of KB for each
/// level of nesting. The operating system commits only the part that is used.
const LARGE_STACK: usize = 64 << 20;

/// Variable bound to the whole object; other variables are its top-level fields.
const OBJECT: &str = "object";
/// Variable bound to the time of the evaluation, unless objects have a field of this name.
const NOW: &str = "now";

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let operators = operators(text);
        if operators > MAX_OPERATORS {
            return Err(format!("it has more than {MAX_OPERATORS} operators and brackets"));
        }
        let (program, variables) = with_large_stack(|| {
            let program = ENV.compile(text).map_err(|error| error.to_string())?;
            let variables = program.references().variables().into_iter().map(str::to_owned).collect();
            Ok((program, variables))
        })?;
        let needs_large_stack = operators > FEW_OPERATORS;
        Ok(Self { text: text.into(), program: Arc::new(program), variables, needs_large_stack })
    }
}

impl Filter {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the expression for an object.
    pub(crate) fn evaluate(&self, object: &Value) -> Result<Evaluation, String> {
        let absent = AbsentFields { object, read: Mutex::default() };
        let outcome = match self.needs_large_stack {
            true => with_large_stack(|| self.outcome(object, &absent))?,
            false => self.outcome(object, &absent)?,
        };
        Ok(Evaluation { outcome, absent: absent.read.into_inner().unwrap_or_else(PoisonError::into_inner) })
    }

    fn outcome(&self, object: &Value, absent: &AbsentFields<'_>) -> Result<Outcome, String> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(absent);
        let declared = context.add_function("quantity", |text: Arc<String>| {
            quantity(&text)
                .ok_or_else(|| cel::ExecutionError::function_error("quantity", "not a quantity such as 500m or 1Gi"))
        });
        declared.map_err(|error| error.to_string())?;
        for name in &*self.variables {
            let value = match object.get(name) {
                _ if name == OBJECT => convert(object),
                Some(value) => convert(value),
                None if name == NOW => now()?,
                // A missing top-level field is an empty map, so that `status.phase` is a missing
                // key.
                None => empty(),
            };
            context.add_variable_from_value(name.as_str(), value);
        }
        match self.program.execute(&context) {
            Ok(cel::Value::Bool(true)) => Ok(Outcome::True),
            Ok(cel::Value::Bool(false)) => Ok(Outcome::False),
            Ok(other) => Err(format!("--where {}: gives {}, not true or false", self.text, other.type_of())),
            Err(cel::ExecutionError::NoSuchKey(name)) => Ok(Outcome::NoSuchField(name.to_string())),
            Err(error) => Err(format!("--where {}: {error}", self.text)),
        }
    }
}

/// The number of characters and words that may be operators or brackets.
fn operators(text: &str) -> usize {
    let signs = text.chars().filter(|sign| "([{!-+*/%.?&|=<>".contains(*sign)).count();
    let words = text.split(|sign: char| !sign.is_alphanumeric() && sign != '_').filter(|word| *word == "in").count();
    signs + words
}

/// Runs a closure on a thread with a large stack, and waits for it.
fn with_large_stack<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LARGE_STACK).spawn_scoped(scope, work);
        thread.map_err(|error| error.to_string())?.join().map_err(|_| "it cannot be evaluated".to_owned())?
    })
}

/// Records which variables are read that an object does not have. Resolves none of them. Variables
/// of macros, such as `c` in `exists(c, …)`, are resolved before. Names with dots are asked for
/// first, because they may be constants of a namespace.
struct AbsentFields<'o> {
    object: &'o Value,
    read: Mutex<BTreeSet<String>>,
}

impl VariableResolver for AbsentFields<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        if ![OBJECT, NOW].contains(&variable) && !variable.contains('.') && self.object.get(variable).is_none() {
            self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(variable.to_owned());
        }
        None
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

/// The current time in CEL's own type.
fn now() -> Result<cel::Value, String> {
    static TIMESTAMP: LazyLock<Result<Program, String>> =
        LazyLock::new(|| ENV.compile("timestamp(text)").map_err(|error| error.to_string()));
    let mut context = Context::with_env(Arc::clone(&ENV));
    context.add_variable_from_value("text", jiff::Timestamp::now().to_string());
    TIMESTAMP.as_ref()?.execute(&context).map_err(|error| error.to_string())
}

fn empty() -> cel::Value {
    cel::Value::Map(Map { map: Arc::new(HashMap::new()) })
}

/// Converts JSON to CEL. Integers become CEL's signed type, as CEL does not mix signed and
/// unsigned.
fn convert(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => cel::Value::Int(whole),
            None => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(convert).collect())),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (Key::from(key.as_str()), convert(value)));
            cel::Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_expression_is_true_of_some_objects() {
        let pod = json!({
            "metadata": {"name": "web-1", "labels": {"app": "web"}},
            "spec": {"replicas": 3},
            "status": {"phase": "Running", "readyReplicas": 2, "containerStatuses": [{"restartCount": 5}, {"restartCount": 0}]},
        });
        for (text, expected) in [
            ("status.phase == 'Running'", true),
            ("status.phase != 'Running'", false),
            ("status.readyReplicas < spec.replicas", true),
            ("spec.replicas == 3", true),
            ("status.containerStatuses.exists(c, c.restartCount > 3)", true),
            ("metadata.name.startsWith('web-') && metadata.labels['app'] == 'web'", true),
            ("metadata.name.matches('^web-[0-9]+$')", true),
            ("has(status.podIP)", false),
            ("status.?podIP.orValue('') == '10.0.0.1'", false),
            ("status.?availableReplicas.orValue(0) < spec.replicas", true),
            ("object.spec.replicas in [1, 3]", true),
        ] {
            let expected = if expected { Outcome::True } else { Outcome::False };
            assert_eq!(text.parse::<Filter>().unwrap().evaluate(&pod).unwrap().outcome, expected, "{text}");
        }
    }

    #[test]
    fn times_and_quantities_are_compared() {
        let pod = json!({
            "metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"},
            "spec": {"requests": {"cpu": "500m", "memory": "1536Mi"}},
        });
        for text in [
            "now - timestamp(metadata.creationTimestamp) > duration('1h')",
            "timestamp(metadata.creationTimestamp).getFullYear() == 2020",
            "quantity(spec.requests.cpu) < quantity('1')",
            "quantity(spec.requests.memory) == quantity('1.5Gi')",
        ] {
            let evaluation = text.parse::<Filter>().unwrap().evaluate(&pod).unwrap();
            assert_eq!((evaluation.outcome, evaluation.absent.len()), (Outcome::True, 0), "{text}");
        }
        let evaluation = "quantity('much') > 1.0".parse::<Filter>().unwrap().evaluate(&pod);
        assert!(evaluation.unwrap_err().contains("not a quantity"));
    }

    #[test]
    fn a_field_that_an_object_does_not_have_is_named() {
        let pod = json!({"metadata": {"name": "a"}, "status": {"items": [1]}});
        for (text, field, absent) in [
            ("status.podIP == '10.0.0.1'", "podIP", &[][..]),
            ("statsu.phase == 'Running'", "phase", &["statsu"]),
            ("status.items.exists(c, c > 0) && data['key'] == 'x'", "key", &["data"]),
        ] {
            let evaluation = text.parse::<Filter>().unwrap().evaluate(&pod).unwrap();
            assert_eq!(evaluation.outcome, Outcome::NoSuchField(field.to_owned()), "{text}");
            assert_eq!(evaluation.absent.iter().map(String::as_str).collect::<Vec<_>>(), absent, "{text}");
        }
    }

    #[test]
    fn what_is_no_question_is_an_error() {
        assert!("status.phase ==".parse::<Filter>().is_err());
        let error =
            "metadata.name".parse::<Filter>().unwrap().evaluate(&json!({"metadata": {"name": "a"}})).unwrap_err();
        assert_eq!(error, "--where metadata.name: gives string, not true or false");
    }
}

#[cfg(test)]
mod fuzz {
    use serde_json::json;

    use super::*;
    use crate::fuzzing::fuzz_on_stack;

    /// That of tokio's worker threads, on which objects are filtered.
    const WORKER_STACK: usize = 2 << 20;

    const PIECES: &str = "status metadata .name .?phase .items object now x ( ) [ ] { } ' \" ''' r'\\' 'a' b'x' \\ é 0 1 \
        9223372036854775807 1.5 true null .exists(x, .all(x, .map(x, .filter(x, has( + - * / % == < && || ! ? : , \
        .size() .matches('a+') .orValue(1) quantity( timestamp( duration( int( string( type(";

    #[test]
    fn any_expression_is_evaluated_or_refused() {
        let mut pieces: Vec<&str> = PIECES.split(' ').collect();
        pieces.extend([" in ", " ", "\n"]);
        let pod = json!({"metadata": {"name": "a"}, "status": {"phase": "Running", "items": [1, 2, {"a": "b"}]}});
        fuzz_on_stack(WORKER_STACK, 300, |source| {
            let text = match source.below(8) {
                0 => source.text(&["(", "[", "!", "-", "{1:", "f(", "f["], 120),
                1 => source.text(&["r'\\'", "'", "\"\"\"", "'\\q'", "("], 3) + &"(".repeat(source.below(300)),
                2 => {
                    let operator = *source.choose(&[" in 1", "+1", "==1", "?1:1", "||1", ".a"]);
                    "1".to_owned() + &operator.repeat(source.below(120))
                }
                3 => {
                    let levels = source.below(100);
                    "(".repeat(levels) + "status.phase" + &")".repeat(levels) + " == 'Running'"
                }
                _ => source.text(&pieces, 20),
            };
            if let Ok(filter) = text.parse::<Filter>() {
                drop(filter.evaluate(&pod));
            }
        });
    }
}
