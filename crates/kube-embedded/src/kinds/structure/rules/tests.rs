use serde_json::json;

use super::value::escaped;
use super::*;

fn evaluate(schema: &Value, value: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let findings = Rules::of(schema).check(schema, value, old);
    let causes = findings.causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    (causes, findings.warnings)
}

#[test]
fn fields_are_called_as_cel_can_call_them() {
    assert_eq!(escaped("a.b/c__d"), "a__dot__b__slash__c__underscores__d");
    let schema = json!({
        "type": "object", "properties": {"a-b": {"type": "integer"}, "namespace": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.a__dash__b > 1 && self.__namespace__ == 'n'"}],
    });
    assert_eq!(evaluate(&schema, &json!({"a-b": 2, "namespace": "n"}), None), (vec![], vec![]));
    assert_eq!(evaluate(&schema, &json!({"a-b": 1, "namespace": "n"}), None).0.len(), 1);
}

#[test]
fn what_cannot_be_checked_is_reported_and_accepted() {
    for rule in ["self ==", "missing.method(self)", "self.size()", "quantity(self).isGreaterThan(quantity('1'))"] {
        let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
        let (causes, warnings) = evaluate(&schema, &json!("a"), None);
        assert!(causes.is_empty(), "{causes:?}");
        assert!(warnings.iter().any(|warning| warning.contains(rule)), "{rule}: {warnings:?}");
    }
    let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]});
    assert_eq!(Rules::of(&schema).unreadable().len(), 1);
}

#[test]
fn rules_that_go_too_deep_are_not_checked() {
    for (opening, closing) in
        [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("self.a(", ")"), ("{1:", "}"), ("1+", "1")]
    {
        for depth in [30, 50, 250, 20_000] {
            let rule = format!("{}self{} == self", opening.repeat(depth), closing.repeat(depth));
            let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
            evaluate(&schema, &json!("a"), None);
        }
    }
}

#[test]
fn a_rule_that_costs_too_much_is_not_checked() {
    let numbers: Vec<u64> = (0..300).collect();
    for rule in [
        // Millions of iterations.
        "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))",
        // When the limit is exceeded, the loops around must not go on to the end.
        &format!("{}false{}", "self.exists(x, ".repeat(30), ")".repeat(30)),
        // Texts and lists that double.
        &format!("['abc']{} != []", ".map(x, x + x)".repeat(60)),
        &format!("[self]{}.all(x, x == x)", ".map(x, {'a': x, 'b': x})".repeat(60)),
        "lists.range(1000000).map(x, lists.range(1000000)).size() > 0",
        "self.map(x, 'abcdefghij').join('abcdefghij').replace('a', self.map(x, 'abcdefghij').join('x')) != ''",
        "self.all(x, 'x'.matches('(a{100}){50}' + string(x)) || true)",
    ] {
        let schema =
            json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
        let (causes, warnings) = evaluate(&schema, &json!(numbers), None);
        assert_eq!((causes.len(), warnings.len()), (0, 1), "{rule}: {causes:?} {warnings:?}");
        assert!(warnings[0].ends_with("it exceeds the cost limit"), "{}", warnings[0]);
    }
}

#[test]
fn rules_of_common_sizes_are_checked() {
    let numbers: Vec<u64> = (0..300).collect();
    for rule in [
        "self.all(a, self.exists(b, a == b))",
        "self.map(x, x * 2).filter(x, x > 3).size() == 298",
        "self.all(x, string(x).matches('^[0-9]{1,63}$'))",
        "self.sortBy(x, -x)[0] == 299",
        "self.map(x, string(x)).join(',').split(',').size() == 300",
        "math.greatest(self) == 299 && optional.of(self).hasValue() && !(400 in self) && self.exists_one(x, x == 3)",
    ] {
        let schema =
            json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
        assert_eq!(evaluate(&schema, &json!(numbers), None), (vec![], vec![]), "{rule}");
    }
}

#[test]
fn the_rules_of_an_object_have_a_limit_together() {
    // Each row has other regular expressions, which are expensive, but not for one rule.
    let rule = json!([{"rule": "self.all(x, 'x'.matches(string(x)) || true)"}]);
    let row = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rule});
    let schema = json!({"type": "array", "items": row});
    let rows = |rows: u64| json!((0..rows).map(|row| (90 * row..90 * (row + 1)).collect()).collect::<Vec<Vec<u64>>>());
    assert_eq!(evaluate(&schema, &rows(5), None), (vec![], vec![]));
    let (causes, warnings) = evaluate(&schema, &rows(20), None);
    assert_eq!((causes.len(), warnings.len()), (0, 1), "{warnings:?}");
}

#[test]
fn an_old_value_may_be_optional() {
    let rule =
        json!({"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": true, "message": "up"});
    let schema = json!({"type": "integer", "x-kubernetes-validations": [rule]});
    assert_eq!(evaluate(&schema, &json!(1), None), (vec![], vec![]));
    assert_eq!(evaluate(&schema, &json!(1), Some(&json!(2))).0, ["<nil>: Invalid value: 1: up"]);
}

#[test]
fn what_was_wrong_before_is_only_warned_of() {
    let schema = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]});
    let (causes, warnings) = evaluate(&schema, &json!(1), Some(&json!(1)));
    assert_eq!((causes, warnings), (vec![], vec!["<nil>: Invalid value: 1: failed rule: self > 5".to_owned()]));
}
