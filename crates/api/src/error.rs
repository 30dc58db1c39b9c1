//! The one shape of every error answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiError {
    /// A stable word for programs: `bad_request`, `not_found`, `conflict`, `busy`, `unavailable`.
    pub code: String,
    /// One sentence for the operator: what, where, found, expected.
    pub message: String,
}
