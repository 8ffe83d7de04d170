//! A policy's settings, as its schema describes them.

use serde_json::Value;

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) name: String,
    /// Null where there is none.
    pub(super) default: Value,
    /// What it may be, for people.
    pub(super) range: String,
    /// What it means.
    pub(super) meaning: String,
    /// Its part of the schema.
    pub(super) schema: Value,
}

/// The settings of a schema, in order of their names; none where it is no schema of an object.
pub(super) fn settings(schema: &Value) -> Vec<Setting> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Setting {
            name: name.clone(),
            default: schema.get("default").cloned().unwrap_or(Value::Null),
            range: range(schema),
            meaning: text(schema.get("description")).unwrap_or_default(),
            schema: schema.clone(),
        })
        .collect()
}

/// A value without the quotes of JSON.
pub(super) fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Some(value.to_string())
        }
    }
}

fn range(schema: &Value) -> String {
    let bound =
        |number: &str, duration: &str| text(schema.get(number)).or_else(|| text(schema.get(duration)));
    let bounds = match (bound("minimum", "x-minimum"), bound("maximum", "x-maximum")) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    };
    let choices = schema.get("enum").and_then(Value::as_array).map(|choices| {
        let all: Vec<String> = choices.iter().filter_map(|choice| text(Some(choice))).collect();
        all.join(", ")
    });
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one.as_str()],
        _ => Vec::new(),
    };
    let kind = || {
        types
            .iter()
            .copied()
            .find(|kind| *kind != "null")
            .unwrap_or("any")
            .to_owned()
    };
    let range = choices.or(bounds).unwrap_or_else(kind);
    if types.contains(&"null") {
        format!("{range}, null")
    } else {
        range
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn ranges_are_told_by_what_the_schema_bounds() {
        for (schema, range) in [
            (json!({ "type": "integer", "minimum": 1, "maximum": 5 }), "1 to 5"),
            (
                json!({ "type": ["string", "null"], "x-minimum": "1ms", "x-maximum": "24h" }),
                "1ms to 24h, null",
            ),
            (json!({ "type": "number", "minimum": 0 }), "at least 0"),
            (json!({ "type": "number", "maximum": 7 }), "at most 7"),
            (
                json!({ "type": "string", "enum": ["calls", "time"] }),
                "calls, time",
            ),
            (json!({ "type": "boolean" }), "boolean"),
            (json!({}), "any"),
        ] {
            assert_eq!(super::range(&schema), range, "{schema}");
        }
    }
}
