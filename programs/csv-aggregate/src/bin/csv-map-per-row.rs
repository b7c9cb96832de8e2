//! The first version: every row becomes a map from column name to bytes, although only the bytes are wanted.
//!
//! Each row costs a table, a `String` per column name and a `ByteBuf` per field.

use csv_aggregate::{Field, parse, run};
use serde_bytes::ByteBuf;
use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;

type Row = HashMap<String, ByteBuf>;

fn read_csv(data: &[u8]) -> Result<Vec<Option<Field>>, Box<dyn Error>> {
    let mut reader = csv::Reader::from_reader(data);
    let headers = reader.byte_headers()?.clone();
    let mut fields = Vec::new();
    for record in reader.byte_records() {
        let row: Row = record?.deserialize(Some(&headers))?;
        fields.extend(row.values().map(|value| parse(value)));
    }
    Ok(fields)
}

fn main() -> ExitCode {
    let _profile = csv_aggregate::profile();
    run("csv-map-per-row", read_csv)
}
