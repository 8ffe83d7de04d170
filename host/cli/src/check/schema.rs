//! A policy's own schema of its settings: whether it is one, and settings that can be made from it.

use boon::{Compiler, SchemaIndex, Schemas};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::time;

/// Where the schema is known to the validator; nothing is fetched.
const NAME: &str = "tripwit:settings";
/// As many random settings are thought up.
const THOUGHT_UP: usize = 6;

/// A schema that has been found to be one.
pub(super) struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
    /// The schemas of the settings, by name.
    pub(super) properties: Map<String, Value>,
    /// Whether fields that it does not name are refused.
    pub(super) closed: bool,
}

impl Schema {
    /// Reads a schema; the error says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler
            .add_resource(NAME, value.clone())
            .map_err(|error| error.to_string())?;
        let index = compiler
            .compile(NAME, &mut schemas)
            .map_err(|error| format!("{error:#}"))?;
        let properties = value.get("properties").and_then(Value::as_object);
        Ok(Self {
            schemas,
            index,
            properties: properties.cloned().unwrap_or_default(),
            closed: value.get("additionalProperties") == Some(&Value::Bool(false)),
        })
    }

    /// Whether settings fit.
    pub(super) fn fits(&self, settings: &Value) -> bool {
        self.schemas.validate(settings, self.index).is_ok()
    }

    /// Every setting that has a default, with that.
    pub(super) fn defaults(&self) -> Value {
        let all = self.properties.iter();
        let defaults = all.filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())));
        Value::Object(defaults.collect())
    }

    /// A text of settings with every default written out, and durations in nanoseconds: what is alike so is alike.
    pub(super) fn filled(&self, text: &str) -> Value {
        let mut filled = self.defaults();
        if let (Value::Object(filled), Ok(Value::Object(given))) = (&mut filled, serde_json::from_str(text)) {
            filled.extend(given);
            for (name, value) in filled {
                if let Some(text) = value.as_str().filter(|_| self.is_duration(name)) {
                    *value = time::duration(text, None).map_or_else(|| json!(text), |time| json!(time));
                }
            }
        }
        filled
    }

    fn is_duration(&self, name: &str) -> bool {
        self.properties.get(name).is_some_and(is_duration)
    }

    /// Settings under which a circuit moves soon, and a few that are random; what is given stays. They fit the schema, as far as it tells.
    pub(super) fn thought_up(&self, seed: u64, given: &Map<String, Value>) -> Vec<Value> {
        let mut rng = Rng::with_seed(seed);
        let mut all = vec![self.least(0), self.least(1)];
        for _ in 0..THOUGHT_UP {
            let mut settings = Map::new();
            for (name, schema) in &self.properties {
                if rng.bool()
                    && let Some(value) = random(schema, &mut rng)
                {
                    settings.insert(name.clone(), value);
                }
            }
            all.push(Value::Object(settings));
        }
        for settings in &mut all {
            if let Value::Object(settings) = settings {
                settings.extend(given.clone());
            }
        }
        all.retain(|settings| self.fits(settings));
        all
    }

    /// Whole numbers at their least, or so much above.
    fn least(&self, above: u64) -> Value {
        let mut settings = Map::new();
        for (name, schema) in &self.properties {
            if let (true, Some(least)) = (
                is(schema, "integer"),
                schema.get("minimum").and_then(Value::as_u64),
            ) {
                let most = schema.get("maximum").and_then(Value::as_u64).unwrap_or(u64::MAX);
                settings.insert(name.clone(), json!(least.saturating_add(above).min(most)));
            }
        }
        Value::Object(settings)
    }
}

/// Whether a schema is of this type, among others perhaps.
pub(super) fn is(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(text)) => text == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    }
}

fn is_duration(schema: &Value) -> bool {
    schema.get("x-unit").is_some_and(|unit| unit == "duration")
}

fn random(schema: &Value, rng: &mut Rng) -> Option<Value> {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices.get(rng.usize(0..choices.len().max(1))).cloned();
    }
    if is(schema, "boolean") {
        return Some(json!(rng.bool()));
    }
    if is(schema, "integer") {
        let least = schema.get("minimum").and_then(Value::as_u64)?;
        return Some(json!(least.saturating_add(rng.u64(0..5))));
    }
    if is(schema, "number") {
        let bounds = [
            schema.get("minimum"),
            schema.get("maximum"),
            schema.get("default"),
        ];
        return bounds.get(rng.usize(0..bounds.len())).copied().flatten().cloned();
    }
    if is(schema, "string") && is_duration(schema) {
        let times = ["1ms", "20ms", "1s", "3s", "7s", "1m"];
        return times.get(rng.usize(0..times.len())).map(|time| json!(time));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_say_the_same_are_alike_when_they_are_filled() {
        let schema = json!({
            "type": "object",
            "properties": {
                "multiplier": { "type": "number", "default": 2 },
                "half_life": { "type": "string", "x-unit": "duration", "default": "60s" },
                "name": { "type": "string", "default": "1m" },
            },
        });
        let schema = Schema::read(&schema.to_string()).unwrap();
        let filled = |text| schema.filled(text);
        for same in [
            r#"{"multiplier": 2}"#,
            r#"{"half_life": "1m"}"#,
            r#"{"name": "1m"}"#,
        ] {
            assert_eq!(filled(same), filled("{}"), "{same}");
        }
        for other in [
            r#"{"multiplier": 3}"#,
            r#"{"half_life": "59s"}"#,
            r#"{"name": "60s"}"#,
        ] {
            assert_ne!(filled(other), filled("{}"), "{other}");
        }
    }
}
