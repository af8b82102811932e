//! The rows of a naming service's store, and the lines of its export. A row that has the checksum of its key is read or
//! refused, and is written again octet by octet. Lines are read, or refused with their number. Valid rows and lines with
//! one lie are not taken for what they are not.

#![no_main]

use deckwatch_fuzz::names_rows;
use deckwatch_naming::store::rows::{BindingRow, ContextRow, Whole};
use deckwatch_naming::store::{ImportError, Into, Store};
use deckwatch_store::sum;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let Some((kind, rest)) = octets.split_first() else {
        return;
    };
    let key = (7, "id", "kind");
    let mut row = rest.to_vec();
    match kind % 6 {
        0 => {
            assert!(BindingRow::parse(key, rest).is_none_or(|(row, _)| row.write(key).0 == rest));
            sum::append("bindings", &[&7_u64.to_be_bytes(), b"id", b"kind"], &mut row);
            if let Some((binding, _)) = BindingRow::parse(key, &row) {
                assert_eq!(binding.write(key).0, row);
                assert!(BindingRow::parse((7, "id", "other"), &row).is_none());
            }
        }
        1 => {
            sum::append("contexts", &[&7_u64.to_be_bytes()], &mut row);
            if let Some((context, _)) = ContextRow::parse(7, &row) {
                assert_eq!(context.write(7).0, row);
                assert!(ContextRow::parse(8, &row).is_none());
            }
        }
        2 => {
            sum::append("whole", &[&2_u64.to_be_bytes()], &mut row);
            if let Some(whole) = Whole::parse(&row) {
                assert_eq!(whole.write(), row);
            }
        }
        3 => {
            let store = Store::in_memory().expect("memory");
            match store.import(rest, Into::Empty) {
                Ok(_) => {
                    let mut text = Vec::new();
                    store.export(&mut text).expect("a sound store");
                    let again = Store::in_memory().expect("memory");
                    again.import(&text[..], Into::Empty).expect("its own lines");
                }
                Err(ImportError::Line { line, fault }) => assert!(line > 0 && !fault.is_empty()),
                Err(_) => {}
            }
        }
        4 => names_rows::play_row(rest),
        _ => names_rows::play_lines(rest),
    }
});
