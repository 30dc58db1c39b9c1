//! The section `remote_id`: what the flight controller's transmitter broadcasts of this aircraft.

use heapless::String as Text;
use serde::Deserialize;
use wingbeat_agent::{
    Operator, OperatorPlace, RemoteIdConfig,
    open_drone_id::{DESCRIPTION_MAX, ID_MAX, IdKind, Identity, PlaceSource},
};

use super::ConfigError;
use super::values::{Choice, quoted, value};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoteId {
    uas_id: Option<String>,
    uas_id_type: Option<Choice<UasIdType>>,
    operator_id: Option<String>,
    description: Option<String>,
    operator_location: Option<Choice<OperatorLocation>>,
    operator_latitude_deg: Option<f64>,
    operator_longitude_deg: Option<f64>,
    operator_altitude_m: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UasIdType {
    #[default]
    SerialNumber,
    Registration,
    TrafficUuid,
    Session,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OperatorLocation {
    #[default]
    TakeOff,
    Fixed,
}

/// What the standard permits in an id, and in a description: characters of ASCII that are printed.
fn text<const N: usize>(key: &'static str, found: &Option<String>) -> Result<Text<N>, ConfigError> {
    let found = found.as_deref().unwrap_or_default();
    let is_printed = found.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && found.trim() == found;
    match Text::try_from(found) {
        Ok(text) if is_printed => Ok(text),
        Ok(_) | Err(_) => Err(quoted(key, found, &format!("at most {N} printed characters of ASCII"))),
    }
}

/// A number within its limits, where there is one.
fn number(
    key: &'static str,
    found: Option<f64>,
    least: f64,
    most: f64,
    unit: &str,
) -> Result<Option<f64>, ConfigError> {
    match found {
        Some(number) if !(least..=most).contains(&number) => {
            Err(value(key, &number, format!("{least} to {most} {unit}")))
        }
        found => Ok(found),
    }
}

impl RemoteId {
    /// Nothing where no id is configured.
    pub(super) fn settings(&self) -> Result<Option<RemoteIdConfig>, ConfigError> {
        let Self { uas_id, uas_id_type, operator_id, description, .. } = self;
        let uas_id = text::<ID_MAX>("remote_id.uas_id", uas_id)?;
        let place = self.place()?;
        let (operator_id, description) = (
            text::<ID_MAX>("remote_id.operator_id", operator_id)?,
            text::<DESCRIPTION_MAX>("remote_id.description", description)?,
        );
        if uas_id.is_empty() {
            return Ok(None);
        }
        let identity = Identity {
            uas_id,
            id_kind: match uas_id_type.map(|choice| choice.0).unwrap_or_default() {
                UasIdType::SerialNumber => IdKind::SerialNumber,
                UasIdType::Registration => IdKind::Registration,
                UasIdType::TrafficUuid => IdKind::TrafficUuid,
                UasIdType::Session => IdKind::Session,
            },
            operator_id,
            description,
        };
        let operator = match self.operator_location.map(|choice| choice.0).unwrap_or_default() {
            OperatorLocation::TakeOff => Operator::TakeOff,
            OperatorLocation::Fixed => match place {
                Some(place) => Operator::Fixed(place),
                None => {
                    let expected = "operator_latitude_deg and operator_longitude_deg beside it";
                    return Err(value("remote_id.operator_location", &"\"fixed\" alone", expected));
                }
            },
        };
        Ok(Some(RemoteIdConfig { identity, operator }))
    }

    /// The configured location, whose numbers are judged also where it is not used.
    fn place(&self) -> Result<Option<OperatorPlace>, ConfigError> {
        let latitude =
            number("remote_id.operator_latitude_deg", self.operator_latitude_deg, -90.0, 90.0, "degrees")?;
        let longitude = number(
            "remote_id.operator_longitude_deg",
            self.operator_longitude_deg,
            -180.0,
            180.0,
            "degrees",
        )?;
        // What the standard can state.
        let altitude =
            number("remote_id.operator_altitude_m", self.operator_altitude_m, -1_000.0, 31_767.5, "m")?;
        let is_fixed = self.operator_location.is_some_and(|choice| choice.0 == OperatorLocation::Fixed);
        let is_given = [latitude, longitude, altitude].iter().any(Option::is_some);
        let e7 = |degrees: f64| (degrees * 1e7).round() as i32;
        match (latitude, longitude) {
            _ if is_given && !is_fixed => {
                let expected = "operator_location = \"fixed\" beside it, or no operator's latitude, longitude or altitude";
                Err(value("remote_id.operator_location", &"a location that is not used", expected))
            }
            (Some(latitude), Some(longitude)) => Ok(Some(OperatorPlace {
                latitude_e7: e7(latitude),
                longitude_e7: e7(longitude),
                altitude_m: altitude.map(|metres| metres as f32),
                source: PlaceSource::Fixed,
            })),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &str) -> Result<Option<RemoteIdConfig>, String> {
        let section: RemoteId = toml::from_str(keys).map_err(|error| error.to_string())?;
        section.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn it_is_off_without_an_id_and_each_mistake_names_its_key() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("description = \"x\""), Ok(None));
        let found = read("uas_id = \"1581F5FJD238800D26V9\"").unwrap().unwrap();
        assert_eq!((found.operator, found.identity.id_kind), (Operator::TakeOff, IdKind::SerialNumber));
        let fixed = "uas_id = \"A\"\noperator_location = \"fixed\"\n";
        let place = format!("{fixed}operator_latitude_deg = 39.482594\noperator_longitude_deg = -0.346265");
        let Operator::Fixed(place) = read(&place).unwrap().unwrap().operator else { panic!("fixed") };
        assert_eq!(
            (place.latitude_e7, place.longitude_e7, place.altitude_m),
            (394_825_940, -3_462_650, None)
        );
        for (keys, expected) in [
            ("uas_id = \"123456789012345678901\"", "remote_id.uas_id: found"),
            ("uas_id = \"\u{00e4}\"", "remote_id.uas_id: found"),
            ("uas_id = \"A\"\ndescription = \"123456789012345678901234\"", "remote_id.description: found"),
            (fixed, "remote_id.operator_location: found \"fixed\" alone"),
            ("operator_latitude_deg = 1.0", "remote_id.operator_location: found a location that is not used"),
            ("operator_latitude_deg = 90.1", "remote_id.operator_latitude_deg: found 90.1"),
            ("operator_altitude_m = nan", "remote_id.operator_altitude_m: found NaN"),
            ("uas_id = \"A\"\nuas_id_type = \"tail\"", "tail"),
        ] {
            let refused = read(keys).unwrap_err();
            assert!(refused.contains(expected), "{keys}: {refused}");
        }
    }
}
