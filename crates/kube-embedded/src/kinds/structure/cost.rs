//! A cost limit for CEL rules, which the interpreter does not have.
//!
//! The syntax tree of a rule is rewritten: around each value that is copied, iterated or passed to
//! a function is a call that subtracts the value's size from what is left, and fails when nothing
//! is. The functions of an environment have no state, so what is left is a variable of the thread.
//!
//! kube-apiserver counts in a similar way. Its limits are the same, but the costs are not.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use cel::common::ast::{EntryExpr, Expr, IdedExpr, operators};
use cel::common::types::{CelBool, CelBytes, CelInt, CelList, CelMap, CelOptional, CelString, DYN_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;
use serde_json::Value;

/// What one rule may cost.
const RULE_LIMIT: u64 = 1_000_000;

/// What all rules of an object may cost together.
const OBJECT_LIMIT: u64 = 10_000_000;

/// The cost of compiling a regular expression.
const REGEX_COST: u64 = 10_000;

/// The number of characters or bytes that cost as much as one number.
const TEXT_PER_UNIT: u64 = 10;

thread_local! {
    static RULE_LEFT: Cell<u64> = const { Cell::new(0) };
    static OBJECT_LEFT: Cell<u64> = const { Cell::new(0) };
    static PATTERNS: RefCell<HashMap<String, Option<Regex>>> = RefCell::default();
}

/// The cost limit is exceeded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exceeded;

/// Sets what the rules of an object may cost.
pub(super) fn begin_object() {
    OBJECT_LEFT.set(OBJECT_LIMIT);
    RULE_LEFT.set(0);
    PATTERNS.take();
}

/// Sets what a rule may cost, to be evaluated on these values.
pub(super) fn begin_rule(values: [Option<&Value>; 2]) -> Result<(), Exceeded> {
    end_rule();
    RULE_LEFT.set(OBJECT_LEFT.get().min(RULE_LIMIT));
    OBJECT_LEFT.set(OBJECT_LEFT.get() - RULE_LEFT.get());
    values.into_iter().flatten().try_for_each(spend_json)
}

/// Returns what the last rule left to the other rules.
fn end_rule() {
    OBJECT_LEFT.set(OBJECT_LEFT.get() + RULE_LEFT.take());
}

/// Whether the rule that was evaluated last exceeded its limit.
pub(super) fn is_exceeded() -> bool {
    RULE_LEFT.get() == 0
}

fn spend(cost: u64) -> Result<(), Exceeded> {
    match RULE_LEFT.get().checked_sub(cost) {
        Some(left) if left > 0 => {
            RULE_LEFT.set(left);
            Ok(())
        }
        // What costs too much ends the evaluation, also if there was something left.
        _ => {
            RULE_LEFT.set(0);
            Err(Exceeded)
        }
    }
}

fn text_cost(length: usize) -> u64 {
    1 + length as u64 / TEXT_PER_UNIT
}

/// Spends the size of a value that is about to be converted.
fn spend_json(value: &Value) -> Result<(), Exceeded> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => spend(1),
        Value::String(text) => spend(text_cost(text.len())),
        Value::Array(items) => spend(1).and_then(|()| items.iter().try_for_each(spend_json)),
        Value::Object(map) => spend(1).and_then(|()| {
            map.iter().try_for_each(|(key, value)| spend(text_cost(key.len())).and_then(|()| spend_json(value)))
        }),
    }
}

/// Spends the size of a value. Stops at the limit, which values that contain others several times
/// can exceed by far.
fn spend_size(value: &dyn Val) -> Result<(), Exceeded> {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        spend(text_cost(text.inner().len()))
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        spend(text_cost(bytes.inner().len()))
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        spend(1)?;
        list.inner().iter().try_for_each(|item| spend_size(&**item))
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        spend(1)?;
        map.inner().iter().try_for_each(|(key, value)| spend_size(key.inner()).and_then(|()| spend_size(&**value)))
    } else if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        spend(1)?;
        optional.inner().map_or(Ok(()), spend_size)
    } else {
        spend(1)
    }
}

/// The functions that the rewritten syntax tree calls. Their names cannot occur in a rule.
#[derive(Debug, Clone, Copy)]
enum Charge {
    /// Costs the size of its argument.
    Size,
    /// Costs the size of its argument, unless that is a map.
    Lookup,
    /// Costs the square of the size of its argument.
    Square,
    /// Costs the number that is its argument.
    Number,
}

/// `matches`, with a cache of compiled expressions.
const MATCHES: &str = "@matches";

impl Charge {
    fn name(self) -> &'static str {
        match self {
            Self::Size => "@size",
            Self::Lookup => "@lookup",
            Self::Square => "@square",
            Self::Number => "@number",
        }
    }

    /// What a function costs for each of its arguments. `None` if its arguments are only passed on.
    fn of(function: &str) -> Option<Self> {
        Some(match function {
            operators::LOGICAL_AND
            | operators::LOGICAL_OR
            | operators::LOGICAL_NOT
            | operators::NOT_STRICTLY_FALSE
            | operators::CONDITIONAL
            | operators::INDEX
            | operators::OPT_INDEX
            | operators::OPT_SELECT => return None,
            operators::IN | "size" => Self::Lookup,
            // Their results, or their time, can be the product of the sizes of their arguments.
            "replace" | "join" | "split" | "format" | "distinct" | "indexOf" | "lastIndexOf" => Self::Square,
            "range" => Self::Number,
            _ => Self::Size,
        })
    }
}

fn failed(Exceeded: Exceeded) -> ExecutionError {
    ExecutionError::function_error("cost", "the limit is exceeded")
}

fn only<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    args.pop().ok_or_else(ExecutionError::missing_argument_or_target)
}

fn charge_size<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = only(args)?;
    spend_size(&*value).map_err(failed)?;
    Ok(value)
}

fn charge_lookup<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = only(args)?;
    let charged = if value.downcast_ref::<CelMap<'_>>().is_some() { spend(1) } else { spend_size(&*value) };
    charged.map_err(failed)?;
    Ok(value)
}

fn charge_square<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = only(args)?;
    let before = RULE_LEFT.get();
    spend_size(&*value).map_err(failed)?;
    let size = before - RULE_LEFT.get();
    spend(size.saturating_mul(size)).map_err(failed)?;
    Ok(value)
}

fn charge_number<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = only(args)?;
    let number = value.downcast_ref::<CelInt>().and_then(|number| u64::try_from(*number.inner()).ok());
    spend(number.unwrap_or(0).saturating_add(1)).map_err(failed)?;
    Ok(value)
}

fn matches<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let missing = ExecutionError::missing_argument_or_target;
    let [text, pattern] = <[CowVal<'b, 'v>; 2]>::try_from(args).map_err(|_| missing())?;
    let (text, pattern) = (text.downcast_ref::<CelString<'_>>(), pattern.downcast_ref::<CelString<'_>>());
    let (Some(text), Some(pattern)) = (text.map(CelString::inner), pattern.map(CelString::inner)) else {
        return Err(missing());
    };
    let is_match = PATTERNS.with_borrow_mut(|patterns| match patterns.get(pattern) {
        Some(known) => Ok(known.as_ref().map(|known| known.is_match(text))),
        None => {
            spend(REGEX_COST).map_err(failed)?;
            let compiled = Regex::new(pattern).ok();
            let is_match = compiled.as_ref().map(|compiled| compiled.is_match(text));
            patterns.insert(pattern.to_owned(), compiled);
            Ok(is_match)
        }
    })?;
    match is_match {
        Some(is_match) => Ok(CowVal::owned(CelBool::from(is_match))),
        None => Err(ExecutionError::function_error("matches", format!("'{pattern}' not a valid regex"))),
    }
}

/// Declares the functions that the rewritten syntax tree calls.
pub(super) fn functions(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(Charge::Size.name(), "@size", vec![DYN_TYPE], charge_size)?;
    env.add_overload(Charge::Lookup.name(), "@lookup", vec![DYN_TYPE], charge_lookup)?;
    env.add_overload(Charge::Square.name(), "@square", vec![DYN_TYPE], charge_square)?;
    env.add_overload(Charge::Number.name(), "@number", vec![DYN_TYPE], charge_number)?;
    env.add_overload(MATCHES, MATCHES, vec![STRING_TYPE, STRING_TYPE], matches)
}

/// The syntax tree of a rule, with charges.
pub(super) fn metered(rule: &IdedExpr) -> IdedExpr {
    let mut variables = HashSet::from(["self".to_owned(), "oldSelf".to_owned()]);
    find_variables(rule, &mut variables);
    let mut metered = rule.clone();
    Meter { variables }.rewrite(&mut metered);
    metered
}

/// Adds the variables of the comprehensions of an expression.
fn find_variables(expr: &IdedExpr, variables: &mut HashSet<String>) {
    match &expr.expr {
        Expr::Call(call) => {
            call.target.iter().for_each(|target| find_variables(target, variables));
            call.args.iter().for_each(|arg| find_variables(arg, variables));
        }
        Expr::Comprehension(loops) => {
            variables.extend([loops.iter_var.clone(), loops.accu_var.clone()]);
            variables.extend(loops.iter_var2.clone());
            for part in [&loops.iter_range, &loops.accu_init, &loops.loop_step, &loops.result] {
                find_variables(part, variables);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|element| find_variables(element, variables)),
        Expr::Map(map) => map.entries.iter().for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                find_variables(&entry.key, variables);
                find_variables(&entry.value, variables);
            }
            EntryExpr::StructField(field) => find_variables(&field.value, variables),
        }),
        Expr::Select(select) => find_variables(&select.operand, variables),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => {}
    }
}

struct Meter {
    variables: HashSet<String>,
}

impl Meter {
    fn rewrite(&self, expr: &mut IdedExpr) {
        match &mut expr.expr {
            Expr::Call(call) => {
                call.target.iter_mut().for_each(|target| self.rewrite(target));
                call.args.iter_mut().for_each(|arg| self.rewrite(arg));
                let Some(charge) = Charge::of(&call.func_name) else { return };
                call.args.iter_mut().for_each(|arg| wrap(arg, charge));
                // Other names are not values: `math.greatest(…)`.
                let is_value = |target: &IdedExpr| name_of(target).is_none_or(|name| self.variables.contains(name));
                if let Some(target) = call.target.as_deref_mut().filter(|target| is_value(target)) {
                    wrap(target, charge);
                }
                let is_free = call.target.as_deref().is_none_or(is_value);
                if call.func_name == "matches" && is_free {
                    MATCHES.clone_into(&mut call.func_name);
                    call.args.splice(0..0, call.target.take().map(|target| *target));
                }
            }
            Expr::Comprehension(loops) => {
                self.rewrite(&mut loops.iter_range);
                // Each element is copied once, so their size limits the number of iterations, too.
                wrap(&mut loops.iter_range, Charge::Size);
                self.rewrite(&mut loops.accu_init);
                self.rewrite_step(&mut loops.loop_step, &loops.accu_var);
                self.rewrite(&mut loops.result);
            }
            // Elements are copied.
            Expr::List(list) => list.elements.iter_mut().for_each(|element| {
                self.rewrite(element);
                wrap(element, Charge::Size);
            }),
            Expr::Map(map) => map.entries.iter_mut().for_each(|entry| {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    for part in [&mut entry.key, &mut entry.value] {
                        self.rewrite(part);
                        wrap(part, Charge::Size);
                    }
                }
            }),
            Expr::Select(select) => self.rewrite(&mut select.operand),
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => {}
        }
    }

    /// Rewrites the step of a loop. What combines the accumulator with the rest stays as it is: the
    /// interpreter recognizes the steps of macros, and appends to their accumulators without a
    /// copy.
    fn rewrite_step(&self, step: &mut IdedExpr, accumulator: &str) {
        let is_accumulator = |expr: &IdedExpr| matches!(&expr.expr, Expr::Ident(name) if name == accumulator);
        match &mut step.expr {
            Expr::Call(call) if call.target.is_none() && call.args.iter().any(is_accumulator) => {
                for arg in call.args.iter_mut().filter(|arg| !is_accumulator(arg)) {
                    self.rewrite_step(arg, accumulator);
                }
            }
            _ => self.rewrite(step),
        }
    }
}

/// The first part of a qualified name such as `a.b.c`. `None` for other expressions.
fn name_of(mut expr: &IdedExpr) -> Option<&str> {
    loop {
        match &expr.expr {
            Expr::Ident(name) => return Some(name),
            Expr::Select(select) if !select.test => expr = &select.operand,
            _ => return None,
        }
    }
}

/// Puts a call around an expression.
fn wrap(expr: &mut IdedExpr, charge: Charge) {
    let call = cel::common::ast::CallExpr {
        func_name: charge.name().to_owned(),
        target: None,
        args: vec![std::mem::take(expr)],
    };
    *expr = IdedExpr { id: call.args[0].id, expr: Expr::Call(call) };
}
