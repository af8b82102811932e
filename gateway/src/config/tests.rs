//! What a file may say, and how its mistakes are shown.

use deckwatch_event::rtec_event_comm::EventHeader;

use super::*;

const HEAD: &str = "channel = \"nav.ior\"\n[zenoh]\nscouting = true\n";
const MAP: &str = "[[map]]\ndirection = \"both\"\ntype = 17\nkey = \"nav/{source}\"\n";

fn parse(text: &str) -> Result<Config, String> {
    let parsed = Config::parse_in(text, Path::new("/etc/nav"));
    parsed.map_err(|mistake| mistake.located("nav.toml", text).to_string())
}

#[track_caller]
fn mistake(text: &str, expected: &str) {
    let error = parse(text).expect_err("a mistake");
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn paths_are_relative_to_the_file_and_defaults_are_modest() {
    let config = parse(&format!("{HEAD}{MAP}")).expect("a config");
    let ChannelSource::File(file) = &config.channel else {
        panic!("{:?}", config.channel)
    };
    assert_eq!(file, Path::new("/etc/nav/nav.ior"));
    let mapping = &config.mappings[0];
    assert_eq!(mapping.priority, MapPriority::Data);
    assert_eq!(mapping.congestion, Congestion::Drop);
    assert!(!mapping.express);
    assert_eq!(mapping.queue_len, crate::limits::QUEUE_LEN_DEFAULT);
    assert_eq!(mapping.headers(), [(17, 0)]);
    let reference = "channel = \"corbaname::ship#NAV\"\n[zenoh]\nscouting = true\n";
    let config = parse(&format!("{reference}{MAP}")).expect("a config");
    assert!(matches!(config.channel, ChannelSource::Reference(_)));
}

#[test]
fn a_range_is_a_filter_of_its_types_and_a_large_one_of_any() {
    let of = |types: &str| {
        let map = MAP.replace("17", types).replace("nav/", "nav/{type}/");
        parse(&format!("{HEAD}{map}"))
            .expect("a config")
            .mappings
            .remove(0)
    };
    assert_eq!(of("\"17..=19\"").headers(), [(17, 0), (18, 0), (19, 0)]);
    assert_eq!(of("\"16 ..= 2147483647\"").headers(), [(0, 0)]);
    let header = |event_type| EventHeader {
        r#type: event_type,
        ..EventHeader::default()
    };
    let mapping = of("\"17..=19\"");
    assert!(mapping.fits(&header(17)) && mapping.fits(&header(19)));
    assert!(!mapping.fits(&header(16)) && !mapping.fits(&header(20)));
}

#[test]
fn mistakes_have_a_place_and_say_what_to_write() {
    let with = |from: &str, to: &str| format!("{HEAD}{}", MAP.replace(from, to));
    mistake(
        "channel = 1",
        "nav.toml:1:11: invalid type: integer `1`, expected a string",
    );
    mistake(HEAD, "nav.toml:1:1: has no [[map]]");
    mistake(
        &with("both", "up"),
        "nav.toml:5:13: unknown variant `up`, expected one of `out`, `in`, `both`",
    );
    mistake(
        &with("17", "9"),
        "nav.toml:6:8: types of applications begin at 16",
    );
    mistake(
        &with("17", "\"20..=19\""),
        "nav.toml:6:8: types of applications begin at 16",
    );
    mistake(
        &with("17", "\"17-19\""),
        "nav.toml:6:8: invalid value: string \"17-19\", expected a number, or a range",
    );
    mistake(
        &with("17", "9999999999"),
        "nav.toml:6:8: a type has 32 bits",
    );
    mistake(
        &with("17", "\"17..=19\""),
        "nav.toml:7:7: the events of several types would have one key",
    );
    mistake(
        &with("/{source}", ""),
        "nav.toml:7:7: a plain publication would have no source",
    );
    mistake(
        &with("{source}", "*"),
        "nav.toml:7:7: wildcards have no number",
    );
    mistake(
        &with("key", "queue = 0\nkey"),
        "nav.toml:7:9: a queue has 1 to 65536 places",
    );
    mistake(
        &with("key", "color = 1\nkey"),
        "nav.toml:7:1: unknown field `color`",
    );
    mistake(
        &format!("{HEAD}{MAP}{MAP}"),
        "nav.toml:8:1: overlaps with [[map]] 1 (nav/{source})",
    );
    mistake(
        &format!("{HEAD}{MAP}").replace("scouting = true", ""),
        "nav.toml:2:1: reaches nobody",
    );
    mistake(
        &format!("listen = \"nowhere\"\n{HEAD}{MAP}"),
        "nav.toml:1:10: ",
    );
    mistake(
        &format!("{HEAD}{MAP}").replace("nav.ior", "corbaloc:x:y"),
        "nav.toml:1:11: is no reference",
    );
    mistake(
        &format!("{HEAD}{}", MAP.repeat(65)),
        "nav.toml:260:1: is one [[map]] more",
    );
}

#[test]
fn mappings_that_share_no_event_may_share_a_key() {
    let other = MAP.replace("17", "18").replace("both", "in");
    assert_eq!(
        parse(&format!("{HEAD}{MAP}{other}"))
            .expect("a config")
            .mappings
            .len(),
        2
    );
    let ways = MAP.replace("both", "in") + &MAP.replace("both", "out");
    assert_eq!(
        parse(&format!("{HEAD}{ways}"))
            .expect("a config")
            .mappings
            .len(),
        2
    );
    let sources = MAP.replace("key", "source = 1\nkey") + &MAP.replace("key", "source = 2\nkey");
    assert_eq!(
        parse(&format!("{HEAD}{sources}"))
            .expect("a config")
            .mappings
            .len(),
        2
    );
}
