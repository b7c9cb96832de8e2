//! The second version: one record, filled again for every row; its buffers grow a few times and then stay.

use csv_aggregate::{Field, parse, run};
use std::error::Error;
use std::process::ExitCode;

fn read_csv(data: &[u8]) -> Result<Vec<Option<Field>>, Box<dyn Error>> {
    let mut reader = csv::Reader::from_reader(data);
    let mut fields = Vec::new();
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record)? {
        fields.extend(record.iter().map(parse));
    }
    Ok(fields)
}

fn main() -> ExitCode {
    let _profile = csv_aggregate::profile();
    run("csv-reused-record", read_csv)
}
