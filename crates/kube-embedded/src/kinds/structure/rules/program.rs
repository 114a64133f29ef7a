//! CEL expressions: compiled once, evaluated within the cost limit.

use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::{Context, Env, ExecutionError};
use serde_json::Value;

use super::super::cost::{self, Exceeded};
use super::value::plain;
use crate::encoding::large_stack::with_large_stack;

/// Maximum number of operators and brackets of a rule, those in strings included. Each can be a
/// level of nesting, and the stack is limited.
const MAX_OPERATORS: usize = 1_000;

/// The CEL environment: the standard library and extensions.
pub(super) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    for extension in [cel::extensions::strings, cel::extensions::lists, cel::extensions::math, cost::functions] {
        // Without an extension, rules that use it fail when they run, which is reported then.
        env.add_extension(extension).ok();
    }
    Arc::new(env)
});

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) expression: IdedExpr,
    /// Whether it refers to the old value.
    pub(super) is_transition: bool,
}

impl Program {
    fn compile(text: &str) -> Result<Self, String> {
        if operators(text) > MAX_OPERATORS {
            return Err("it is too long".to_owned());
        }
        let program = ENV.compile(text).map_err(|error| error.to_string())?;
        let is_transition = program.references().has_variable("oldSelf");
        Ok(Self { expression: cost::metered(program.expression()), is_transition })
    }
}

/// Compiles an expression on a large stack.
pub(super) fn compile(text: &str) -> Result<Program, String> {
    with_large_stack(|| Program::compile(text)).unwrap_or_else(Err)
}

/// Why a rule is not checked whose evaluation exceeds the cost limit.
pub(super) const TOO_COSTLY: &str = "it exceeds the cost limit";

/// The number of characters and words that may be operators or brackets. What is in strings counts
/// as well: the parser goes on after a string that is malformed or not closed.
fn operators(text: &str) -> usize {
    let signs = text.chars().filter(|sign| "([{!-+*/%.?&|=<>".contains(*sign)).count();
    let words = text.split(|sign: char| !sign.is_alphanumeric() && sign != '_').filter(|word| *word == "in").count();
    signs + words
}

/// Whether conditions hold, which are evaluated on variables without a schema.
///
/// # Errors
///
/// The message of a condition that does not give a truth value, if none is false.
pub(crate) fn are_met(conditions: &[&str], variables: &[(&str, &Value)]) -> Result<bool, String> {
    let evaluate_all = || {
        let mut failure = None;
        for text in conditions {
            match Program::compile(text).and_then(|program| evaluate(&program, variables)) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => failure = Some(why),
            }
        }
        failure.map_or(Ok(true), Err)
    };
    with_large_stack(evaluate_all).unwrap_or_else(Err)
}

fn evaluate(program: &Program, variables: &[(&str, &Value)]) -> Result<bool, String> {
    cost::begin_object();
    let values = [variables.first(), variables.get(1)].map(|each| each.map(|(_, value)| *value));
    cost::begin_rule(values).map_err(|Exceeded| TOO_COSTLY)?;
    let mut context = Context::with_env(Arc::clone(&ENV));
    for (name, value) in variables {
        context.add_variable_from_value(*name, plain(value));
    }
    let result = context.resolve(&program.expression);
    if cost::is_exceeded() {
        return Err(TOO_COSTLY.to_owned());
    }
    match result {
        Ok(cel::Value::Bool(truth)) => Ok(truth),
        Ok(other) => Err(format!("the condition gives {}", other.type_of())),
        Err(error) => Err(go_message(&error).unwrap_or_else(|| error.to_string())),
    }
}

/// Converts an old value to a CEL optional.
pub(super) fn optional(value: Option<cel::Value>) -> Option<cel::Value> {
    let mut context = Context::with_env(Arc::clone(&ENV));
    let text = if value.is_some() { "optional.of(value)" } else { "optional.none()" };
    context.add_variable_from_value("value", value.unwrap_or(cel::Value::Null));
    ENV.compile(text).ok()?.execute(&context).ok()
}

/// The message of kube-apiserver for an evaluation error that the object caused.
pub(super) fn go_message(error: &ExecutionError) -> Option<String> {
    match error {
        ExecutionError::NoSuchKey(key) => Some(format!("no such key: {key}")),
        ExecutionError::DivisionByZero(_) => Some("division by zero".to_owned()),
        ExecutionError::RemainderByZero(_) => Some("modulus by zero".to_owned()),
        ExecutionError::IndexOutOfBounds(cel::Value::Int(index)) => Some(format!("index out of bounds: {index}")),
        ExecutionError::Overflow(..) => Some("integer overflow".to_owned()),
        _ => None,
    }
}
