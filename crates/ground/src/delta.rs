//! What changed between two JSON values, and numbers no longer than they are good for: what a console receives of an
//! aircraft five times a second.

use serde_json::{Map, Value};

/// What makes `new` of `old`; `None` where they are equal. An object changes the members that it names, and on a list the elements
/// by their index; every other value, a list among them, takes the place of the old one. No value of the API is a list once and an
/// object another time, which a change could not tell apart. A member that is no longer there is
/// null: in the API's types absent and null are the same.
pub(crate) fn change(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let mut members = Map::new();
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let gone = old.iter().filter(|(name, value)| !value.is_null() && !new.contains_key(*name));
            members.extend(gone.map(|(name, _)| (name.clone(), Value::Null)));
            for (name, value) in new {
                let changed = change(old.get(name).unwrap_or(&Value::Null), value);
                members.extend(changed.map(|changed| (name.clone(), changed)));
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                members.extend(change(old, new).map(|changed| (index.to_string(), changed)));
            }
        }
        _ => return Some(new.clone()),
    }
    // Absent in one and null in the other.
    (!members.is_empty()).then_some(Value::Object(members))
}

/// The new value, of the old one and a change; as the page does it (`web/src/fleet/change.ts`). A place that a list does not have stays
/// away.
pub(crate) fn apply(old: Value, change: Value) -> Value {
    match (old, change) {
        (Value::Object(mut old), Value::Object(change)) => {
            for (name, value) in change {
                let before = old.remove(&name).unwrap_or(Value::Null);
                old.insert(name, apply(before, value));
            }
            Value::Object(old)
        }
        (Value::Array(mut old), Value::Object(change)) => {
            for (index, value) in change {
                if let Some(place) = index.parse::<usize>().ok().and_then(|index| old.get_mut(index)) {
                    *place = apply(place.take(), value);
                }
            }
            Value::Array(old)
        }
        (_, change) => change,
    }
}

/// Puts back what a member was, where nothing but numbers in it has changed.
pub(crate) fn keep_numbers(old: &Value, parent: &mut Value, member: &str) {
    if let Some(new) = parent.get_mut(member).filter(|new| differ_in_numbers(old, new)) {
        *new = old.clone();
    }
}

/// Whether both are the same but for their numbers.
fn differ_in_numbers(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Number(_), Value::Number(_)) => true,
        (Value::Object(old), Value::Object(new)) => {
            old.len() == new.len()
                && old.iter().all(|(name, old)| new.get(name).is_some_and(|new| differ_in_numbers(old, new)))
        }
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| differ_in_numbers(old, new))
        }
        (old, new) => old == new,
    }
}

/// Rounds a number to what its unit, the last part of its name, is shown by: places to 1e-7 degrees, everything else to
/// hundredths. Numbers of another name stay as they are.
pub(crate) fn round(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match digits(name) {
                    Some(digits) if member.is_f64() => *member = shortened(member, digits),
                    Some(digits) if member.is_array() => {
                        for element in member.as_array_mut().into_iter().flatten().filter(|e| e.is_f64()) {
                            *element = shortened(element, digits);
                        }
                    }
                    _ => round(member),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn digits(name: &str) -> Option<i32> {
    match name {
        "latitude_deg" | "longitude_deg" => Some(7),
        _ => ["_deg", "_m", "_s", "_v", "_a"].iter().any(|unit| name.ends_with(unit)).then_some(2),
    }
}

fn shortened(number: &Value, digits: i32) -> Value {
    let factor = 10_f64.powi(digits);
    // The quotient is the double that is nearest to the short decimal, and so is written as that.
    number.as_f64().map_or(Value::Null, |number| Value::from((number * factor).round() / factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_makes_the_new_value_of_the_old_one() {
        let values = [
            json!({"a": 1, "b": {"c": [1, 2, 3], "d": "x"}, "n": null}),
            json!({"a": 1, "b": {"c": [1, 5, 3], "d": "x"}, "n": {"e": 1}}),
            json!({"a": 2, "b": {"c": [1, 5], "d": "y"}, "n": {"e": 2}}),
            json!({"a": "hold", "b": {"c": [{"k": 1}, {"k": 2}], "d": "y"}, "n": null}),
            json!({"a": {"exclude": {"member": "b"}}, "b": {"c": [{"k": 1}, {"k": 3}], "d": "y"}, "n": {"e": [1]}}),
        ];
        for old in &values {
            for new in &values {
                match change(old, new) {
                    None => assert_eq!(old, new),
                    Some(change) => assert_eq!(&apply(old.clone(), change.clone()), new, "by {change}"),
                }
            }
        }
    }

    #[test]
    fn only_what_changed_is_in_it() {
        let (old, new) = (
            json!({"a": 1, "b": [{"k": 1, "l": 1}, {"k": 2}]}),
            json!({"a": 1, "b": [{"k": 1, "l": 7}, {"k": 2}]}),
        );
        assert_eq!(change(&old, &new), Some(json!({"b": {"0": {"l": 7}}})));
        assert_eq!(change(&json!({"a": 1}), &json!({})), Some(json!({"a": null})));
        assert_eq!(change(&json!({"a": null}), &json!({})), None, "absent is null");
    }

    #[test]
    fn what_differs_in_more_than_numbers_does_not_wait() {
        let old = json!({"sent": 1, "down": null, "refused": [{"reason": "stale", "count": 1}]});
        for (new, waits) in [
            (json!({"sent": 2, "down": null, "refused": [{"reason": "stale", "count": 9}]}), true),
            (json!({"sent": 2, "down": "no interface", "refused": [{"reason": "stale", "count": 1}]}), false),
            (json!({"sent": 2, "down": null, "refused": []}), false),
            (json!(null), false),
        ] {
            let mut status = json!({ "radio": new });
            keep_numbers(&old, &mut status, "radio");
            assert_eq!(status["radio"] == old, waits, "{status}");
        }
    }

    #[test]
    fn numbers_are_rounded_by_their_unit() {
        let mut value = json!({"latitude_deg": 39.482_594_123_4, "height_m": 10.123_456, "cells_v": [4.123_4], "value": 0.001_23, "time_ms": 7, "slots": [{"heading_deg": 359.999}]});
        round(&mut value);
        let expected = r#"{"cells_v":[4.12],"height_m":10.12,"latitude_deg":39.4825941,"slots":[{"heading_deg":360.0}],"time_ms":7,"value":0.00123}"#;
        assert_eq!(value.to_string(), expected);
    }
}
