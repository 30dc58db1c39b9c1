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

fn number(
    key: &'static str,
    found: Option<f64>,
    least: f64,
    most: f64,
    unit: &str,
) -> Result<f64, ConfigError> {
    match found {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        found => {
            let found = found.map_or_else(|| "nothing".to_owned(), |number| number.to_string());
            Err(value(key, &found, format!("{least} to {most} {unit}")))
        }
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

    /// The configured location.
    fn place(&self) -> Result<Option<OperatorPlace>, ConfigError> {
        let (latitude, longitude, altitude) =
            (self.operator_latitude_deg, self.operator_longitude_deg, self.operator_altitude_m);
        if latitude.is_none() && longitude.is_none() && altitude.is_none() {
            return Ok(None);
        }
        let is_fixed = self.operator_location.is_some_and(|choice| choice.0 == OperatorLocation::Fixed);
        if !is_fixed {
            let expected = "operator_location = \"fixed\" beside it, or none of the three";
            return Err(value("remote_id.operator_latitude_deg", &"a location that is not used", expected));
        }
        let e7 = |degrees: f64| (degrees * 1e7).round() as i32;
        let altitude_m = match altitude {
            Some(_) => {
                Some(number("remote_id.operator_altitude_m", altitude, -1_000.0, 31_767.5, "m")? as f32)
            }
            None => None,
        };
        Ok(Some(OperatorPlace {
            latitude_e7: e7(number("remote_id.operator_latitude_deg", latitude, -90.0, 90.0, "degrees")?),
            longitude_e7: e7(number(
                "remote_id.operator_longitude_deg",
                longitude,
                -180.0,
                180.0,
                "degrees",
            )?),
            altitude_m,
            source: PlaceSource::Fixed,
        }))
    }
}
