//! `deckwatch events` as a user sees it, on a channel in the test's hand.

mod hand;
mod list;
mod mission;
mod real_time;
mod recordings;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use deckwatch_cdr::typecode::Member;
use deckwatch_cdr::value::{MemberPath, Value};
use deckwatch_cdr::{Any, TypeCode};
use rustix::process::{Pid, Signal, kill_process};

use hand::Hand;

/// A `deckwatch events` process, killed when this is dropped.
struct Events(Child);

impl Events {
    fn start(hand: &Hand, arguments: &[&str]) -> Self {
        Self::at(&hand.ior, arguments)
    }

    fn at(ior: &str, arguments: &[&str]) -> Self {
        let (action, rest) = arguments.split_first().expect("a subcommand");
        let process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(["events", action, "--ior", ior])
            .args(rest)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Self(process)
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.0.id()).expect("a process id");
        kill_process(Pid::from_raw(id).expect("a process id"), signal).expect("it runs");
    }

    /// Writes standard input, and closes it.
    fn say(&mut self, text: &str) {
        let mut input = self.0.stdin.take().expect("a pipe");
        input.write_all(text.as_bytes()).expect("it reads");
    }

    /// Waits for the end. Returns exit status, standard output and standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        drop(self.0.stdin.take());
        let mut texts = [String::new(), String::new()];
        if let Some(mut output) = self.0.stdout.take() {
            output.read_to_string(&mut texts[0]).expect("UTF-8");
        }
        let mut errors = self.0.stderr.take().expect("a pipe");
        errors.read_to_string(&mut texts[1]).expect("UTF-8");
        let status = self.0.wait().expect("it ends");
        let [output, errors] = texts;
        (status.code(), output, errors)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Fails if it has ended, as it should.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(number: u32) -> Any {
    Any::from_value(&number).expect("an event")
}

/// A struct whose names a peer may have chosen.
fn structure(id: &str, name: &str, member: &str, text: &str) -> Any {
    let code = TypeCode::unbounded_string();
    let member = Member {
        name: member,
        type_code: &code,
    };
    let code = TypeCode::structure(id, name, &[member]);
    let value = Value::Struct(vec![Value::String(text.to_owned())]);
    Any::from_dynamic(&code, &value).expect("an event")
}

fn nav() -> Any {
    nav_at(0)
}

fn nav_at(measured_ns: u64) -> Any {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl/deckwatch/nav.idl");
    let model = deckwatch_idl::Model::load(file, &[]).expect("nav.idl");
    let code = model.type_code("Nav::NavData").expect("the type");
    let mut value = Value::default_for(&code).expect("a value");
    let path = MemberPath::resolve(&code, "measured_ns").expect("the member");
    *path.slot(&mut value).expect("the member") = Value::ULongLong(measured_ns);
    Any::from_dynamic(&code, &value).expect("an event")
}

#[test]
fn echo_prints_each_event_as_text_decoded_by_its_type_code() {
    let hand = Hand::new();
    let echo = Events::start(&hand, &["echo", "--count", "3"]);
    let consumer = hand.consumer();
    let greeting = structure("IDL:Port/Greeting:1.0", "Greeting", "words", "ahoy");
    for event in [number(7), greeting, nav()] {
        consumer.push(&event).expect("pushed");
    }
    let (status, output, errors) = echo.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    assert_eq!(hand.proxies(), 0);
    // Each event begins with a time, such as 12:34:56.789Z.
    let is_time = |word: &str| word.len() == 13 && word.ends_with('Z');
    let lines = output.lines().map(|line| match line.split_once(' ') {
        Some((word, rest)) if is_time(word) => format!("TIME {rest}"),
        _ => line.to_owned(),
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn echo_prints_json_lines_of_the_types_asked_for() {
    let hand = Hand::new();
    let arguments = [
        "echo", "--json", "--count", "2", "--type", "Greeting", "--type", "long",
    ];
    let echo = Events::start(&hand, &arguments);
    let consumer = hand.consumer();
    let greeting = structure("IDL:Port/Greeting:1.0", "Greeting", "words", "a\"b");
    let long = Any::from_value(&-2_i32).expect("an event");
    for event in [number(7), greeting, number(8), long] {
        consumer.push(&event).expect("pushed");
    }
    let (status, output, errors) = echo.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    let lines = output.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let object = line.as_object_mut().expect("an object");
        let received = object.remove("received").expect("a time");
        assert!(received.as_str().is_some_and(|time| time.ends_with('Z')));
        let monotonic = object.remove("received_monotonic_ns").expect("a time");
        assert!(monotonic.as_u64().is_some_and(|time_ns| time_ns > 0));
        line.to_string()
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn echo_decodes_octets_by_a_type_of_an_idl_file() {
    let hand = Hand::new();
    let idl = "crates/cli/tests/broad.idl";
    let arguments = [
        "echo",
        "--count",
        "2",
        "--json",
        "--type",
        "unsigned long",
        "--idl",
        idl,
    ];
    let echo = Events::start(&hand, &arguments);
    let consumer = hand.consumer();
    let octets = vec![1_u8, 0, 0, 0, 42, 0, 0, 0];
    let octets = Any::from_value(&octets).expect("an event");
    for event in [number(7), structure("IDL:X:1.0", "X", "x", ""), octets] {
        consumer.push(&event).expect("pushed");
    }
    let (status, output, errors) = echo.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    let values = output.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["type"], "unsigned long");
        line["value"].as_u64()
    });
    assert_eq!(values.collect::<Vec<_>>(), [Some(7), Some(42)]);
}

#[test]
fn hostile_events_are_escaped_or_described() {
    let hand = Hand::new();
    let echo = Events::start(&hand, &["echo", "--count", "3"]);
    let json = Events::start(&hand, &["echo", "--count", "3", "--json"]);
    let consumers = [hand.consumer(), hand.consumer()];
    let escape = structure(
        "IDL:\u{1b}[2J:1.0",
        "\u{1b}[2J",
        "m\u{9b}\n",
        "\u{1b}]0;x\u{7}\u{202e}",
    );
    let large = Any::from_value(&vec![0_u8; 1 << 20]).expect("an event");
    let mut deep = number(1);
    for _ in 0..40 {
        deep = Any::from_value(&deep).expect("an event");
    }
    for event in [escape, large, deep] {
        for consumer in &consumers {
            consumer.push(&event).expect("pushed");
        }
    }
    for process in [echo, json] {
        let (status, output, errors) = process.end();
        assert_eq!((status, &*errors), (Some(0), ""));
        let is_plain = |c: char| c == '\n' || c.is_ascii_graphic() || c == ' ';
        assert!(output.chars().all(is_plain), "{output}");
        assert!(output.contains("octets, too many to print"), "{output}");
        assert!(output.contains("\\u001b]0;x\\u0007\\u202e"), "{output}");
        assert!(output.len() < 20_000, "{}", output.len());
    }
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn a_signal_disconnects_and_leaves_no_proxy() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for (arguments, expected) in [
            (&["echo"][..], 0),
            (&["echo", "--count", "9"], code),
            (&["hz"], 0),
            (&["hz", "--for", "1h"], code),
        ] {
            let hand = Hand::new();
            let process = Events::start(&hand, arguments);
            let consumer = hand.consumer();
            consumer.push(&number(1)).expect("pushed");
            assert_eq!(hand.proxies(), 1);
            process.signal(signal);
            let (status, _, errors) = process.end();
            assert_eq!(status, Some(expected), "{arguments:?}: {errors}");
            assert_eq!(hand.proxies(), 0, "{arguments:?}");
        }
    }
}

#[test]
fn a_signal_disconnects_a_supplier_that_waits_for_input() {
    let hand = Hand::new();
    let mut publish = Events::start(&hand, &["publish", "--type", "unsigned long"]);
    let input = publish.0.stdin.as_mut().expect("a pipe");
    input.write_all(b"1\n").expect("it reads");
    let first = hand.pushed.recv_timeout(hand::PATIENCE).expect("an event");
    assert_eq!(first.extract::<u32>(), Ok(1));
    // The pipe stays open: the read does not end.
    let kept = publish.0.stdin.take();
    publish.signal(Signal::TERM);
    let (status, _, errors) = publish.end();
    assert_eq!((status, &*errors), (Some(0), "Sent 1 event.\n"));
    assert_eq!(hand.proxies(), 0);
    drop(kept);
}

#[test]
fn a_reader_that_closes_the_pipe_ends_the_command() {
    let hand = Hand::new();
    let mut echo = Events::start(&hand, &["echo"]);
    let consumer = hand.consumer();
    consumer.push(&number(1)).expect("pushed");
    let mut output = BufReader::new(echo.0.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert!(line.ends_with("unsigned long  1\n"), "{line}");
    drop(output);
    consumer.push(&number(2)).expect("pushed");
    let (status, _, errors) = echo.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn a_signal_ends_a_command_whose_reader_does_not_read() {
    let hand = Hand::new();
    let mut echo = Events::start(&hand, &["echo"]);
    let consumer = hand.consumer();
    let text = structure("IDL:Long:1.0", "Long", "text", &"x".repeat(1_000));
    let output = echo.0.stdout.take().expect("a pipe");
    while rustix::io::ioctl_fionread(&output).expect("a pipe") < 40_000 {
        consumer.push(&text).expect("pushed");
    }
    // A pipe has 64 KiB: all of these do not fit.
    for _ in 0..60 {
        consumer.push(&text).expect("pushed");
    }
    echo.signal(Signal::TERM);
    let until = std::time::Instant::now() + hand::PATIENCE;
    let status = loop {
        match echo.0.try_wait().expect("a child") {
            Some(status) => break status,
            None => assert!(std::time::Instant::now() < until, "it waits for the reader"),
        }
        std::thread::yield_now();
    };
    assert_eq!(status.code(), Some(0));
    assert_eq!(hand.proxies(), 0);
    drop(output);
}

#[test]
fn windows_without_events_do_not_delay_a_signal() {
    let hand = Hand::new();
    let hz = Events::start(&hand, &["hz", "--window", "1us"]);
    let (status, _, errors) = hz.end();
    assert_eq!(status, Some(2));
    assert!(errors.contains("a window has at least 1ms"), "{errors}");
    let hz = Events::start(&hand, &["hz", "--window", "1ms"]);
    drop(hand.consumer());
    hz.signal(Signal::INT);
    let (status, output, errors) = hz.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    assert!(output.ends_with("total   0 events\n"), "{output}");
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn the_end_of_the_channel_is_told_after_its_last_event() {
    for (arguments, expected, words) in [
        (&["echo"][..], 0, "The channel has ended.\n"),
        (
            &["echo", "--count", "3"],
            1,
            "The channel has ended after 1 of 3 events.\n",
        ),
    ] {
        let hand = Hand::new();
        let echo = Events::start(&hand, arguments);
        let consumer = hand.consumer();
        consumer.push(&number(1)).expect("pushed");
        consumer.disconnect_push_consumer().expect("told");
        let (status, output, errors) = echo.end();
        assert_eq!((status, &*errors), (Some(expected), words));
        assert!(output.ends_with("unsigned long  1\n"), "{output}");
    }
}

#[test]
fn too_few_events_within_the_time_are_no_success() {
    let hand = Hand::new();
    let echo = Events::start(&hand, &["echo", "--count", "2", "--for", "1ms"]);
    let (status, output, errors) = echo.end();
    let words = "The time is over after 0 of 2 events.\n";
    assert_eq!((status, &*output, &*errors), (Some(1), "", words));
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn hz_counts_every_event_and_interval() {
    let hand = Hand::new();
    let hz = Events::start(&hand, &["hz", "--json", "--count", "11", "--window", "1h"]);
    let consumer = hand.consumer();
    for event in 0..11 {
        consumer.push(&number(event)).expect("pushed");
    }
    let (status, output, errors) = hz.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    let total: serde_json::Value = serde_json::from_str(&output).expect("one line of JSON");
    let total = &total["total"];
    assert_eq!(
        (&total["events"], &total["intervals"]),
        (&11.into(), &10.into())
    );
    let inter = &total["inter_arrival"];
    assert!(
        inter["min_ns"].as_i64() <= inter["max_ns"].as_i64(),
        "{output}"
    );
    assert!(total["rate_hz"].as_f64() > Some(0.0), "{output}");
}

#[test]
fn publish_sends_arguments_again_and_again_at_a_rate() {
    let hand = Hand::new();
    let arguments = ["publish", "1", "2", "--type", "unsigned long"];
    let rate = ["--count", "5", "--rate", "1000/s", "--json"];
    let publish = Events::start(&hand, &[&arguments[..], &rate[..]].concat());
    let (status, output, errors) = publish.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    let counts: serde_json::Value = serde_json::from_str(&output).expect("one line of JSON");
    assert_eq!(counts["sent"], 5, "{output}");
    let sent: Vec<_> = hand
        .pushed
        .try_iter()
        .map(|event| event.extract::<u32>())
        .collect();
    assert_eq!(sent, [1, 2, 1, 2, 1].map(Ok));
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn publish_sends_each_line_of_standard_input() {
    let hand = Hand::new();
    let mut publish = Events::start(&hand, &["publish"]);
    publish.say("{\"type\": \"string\", \"value\": \"ahoy\"}\n\n{type: \"Object\", value: nil}\n");
    let (status, output, errors) = publish.end();
    assert_eq!(
        (status, &*output, &*errors),
        (Some(0), "", "Sent 2 events.\n")
    );
    let sent: Vec<Any> = hand.pushed.try_iter().collect();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].extract::<String>(), Ok("ahoy".to_owned()));
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn the_lines_of_echo_are_published_as_the_events_that_they_show() {
    let hand = Hand::new();
    let greeting = structure("IDL:Port/Greeting:1.0", "Greeting", "words", "a\"b");
    let events = [number(7), greeting, nav_at(5), Any::empty()];
    let echo = Events::start(&hand, &["echo", "--json", "--count", "4"]);
    let consumer = hand.consumer();
    for event in &events {
        consumer.push(event).expect("pushed");
    }
    let (status, lines, errors) = echo.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    let nav_idl = ["--idl", "idl/deckwatch/nav.idl"];
    for more in [&[][..], &nav_idl] {
        let mut publish = Events::start(&hand, &[&["publish"][..], more].concat());
        publish.say(&lines);
        let (status, _, errors) = publish.end();
        assert_eq!((status, &*errors), (Some(0), "Sent 4 events.\n"), "{lines}");
        let sent: Vec<Any> = hand.pushed.try_iter().collect();
        assert_eq!(sent.len(), events.len());
        for (sent, event) in sent.iter().zip(&events) {
            assert!(sent.type_code().equivalent(event.type_code()));
            assert_eq!(sent.to_dynamic(), event.to_dynamic());
        }
    }
    let large = Any::from_value(&vec![0_u8; 1 << 20]).expect("an event");
    let echo = Events::start(&hand, &["echo", "--json", "--count", "1"]);
    hand.consumer().push(&large).expect("pushed");
    let mut publish = Events::start(&hand, &["publish"]);
    publish.say(&echo.end().1);
    let (status, _, errors) = publish.end();
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("standard input, line 1") && errors.contains("too many to print"),
        "{errors}"
    );
}

#[test]
fn a_channel_is_listed_by_its_reference() {
    let hand = Hand::new();
    let list = Events::start(&hand, &["list", "--interval", "1ms"]);
    let (status, output, errors) = list.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    assert!(
        output.starts_with("IOR  127.0.0.1:") && output.contains("reports nothing"),
        "{output}"
    );
    let nobody = Events::at("corbaloc::127.0.0.1:9/thing", &["list"]);
    let (status, _, errors) = nobody.end();
    assert_eq!(status, Some(2));
    assert!(
        errors.starts_with("error: the event channel does not answer\n"),
        "{errors}"
    );
    assert_eq!(errors.matches("TRANSIENT").count(), 1, "{errors}");
}

#[test]
fn a_line_that_is_no_event_is_told_with_its_place_and_disconnects() {
    let hand = Hand::new();
    let mut publish = Events::start(&hand, &["publish", "--type", "sequence<short>"]);
    publish.say("[1, 2]\n[3, many]\n");
    let (status, output, errors) = publish.end();
    assert_eq!((status, &*output), (Some(2), ""));
    insta::assert_snapshot!(errors);
    assert_eq!(hand.pushed.try_iter().count(), 1);
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn what_is_no_channel_or_type_is_told() {
    let hand = Hand::new();
    let consumer = {
        let _echo = Events::start(&hand, &["echo"]);
        hand.consumer().object().to_string()
    };
    assert!(consumer.starts_with("IOR:"));
    let command = |arguments: &[&str]| {
        let process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .arg("events")
            .args(arguments)
            .env("NO_COLOR", "1")
            .output()
            .expect("the program starts");
        assert_eq!(process.status.code(), Some(2));
        String::from_utf8(process.stderr).expect("UTF-8")
    };
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/broad.idl");
    let texts = [
        command(&["echo", "--ior", &hand.ior, "NAV"]),
        command(&[
            "echo", "--ior", &hand.ior, "--idl", idl, "--type", "Nowhere",
        ]),
        command(&["publish", "--ior", &hand.ior, "--type", "long", "1", "x"]),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn the_age_of_events_is_the_time_from_a_member() {
    let hand = Hand::new();
    let arguments = ["delay", "--stamp", "measured_ns", "--count", "2", "--json"];
    let delay = Events::start(&hand, &arguments);
    let consumer = hand.consumer();
    // A nanosecond after the start of this host's CLOCK_MONOTONIC.
    for _ in 0..2 {
        consumer.push(&nav_at(1)).expect("pushed");
    }
    let (status, output, errors) = delay.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    let total = output.lines().last().expect("a line");
    let total: serde_json::Value = serde_json::from_str(total).expect("JSON");
    let now_ns = deckwatch_os::clock::monotonic_ns();
    let age_ns = total["total"]["min_ns"].as_i64().expect("an age");
    assert!(age_ns > 0 && age_ns < now_ns, "{output}");
    assert_eq!(
        (&total["total"]["events"], &total["total"]["future"]),
        (&2.into(), &0.into())
    );

    let arguments = ["delay", "--stamp", "header.sec,header.nsec", "--count", "1"];
    let delay = Events::start(&hand, &arguments);
    hand.consumer().push(&number(1)).expect("pushed");
    let (status, _, errors) = delay.end();
    assert_eq!(status, Some(2));
    insta::assert_snapshot!(errors);
    assert_eq!(hand.proxies(), 0);
}

#[test]
fn a_member_that_a_peer_has_named_moves_no_cursor() {
    let hand = Hand::new();
    let delay = Events::start(&hand, &["delay", "--stamp", "at", "--count", "1"]);
    let event = structure("IDL:X:1.0", "X", "m\u{1b}[2J\u{9b}", "");
    hand.consumer().push(&event).expect("pushed");
    let (status, _, errors) = delay.end();
    assert_eq!(status, Some(2));
    assert!(errors.contains("m\\u001b[2J\\u009b"), "{errors}");
    assert!(
        !errors.contains(|c: char| c.is_control() && c != '\n'),
        "{errors:?}"
    );
}
