//! The rows of the command and event tables as schemas.

use std::any::TypeId;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::command::NoData;

/// A row of the command table.
pub(crate) struct CommandRow {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) params: Schema,
    pub(crate) data: Option<Schema>,
}

/// A row of the event table.
pub(crate) struct EventRow {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) body: Schema,
}

/// The schema of a command's `data`; `None` when it answers without.
pub(crate) fn data_schema<T: JsonSchema + 'static>(generator: &mut SchemaGenerator) -> Option<Schema> {
    (TypeId::of::<T>() != TypeId::of::<NoData>()).then(|| generator.subschema_for::<T>())
}
