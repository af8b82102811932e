//! The rustorb ends of the laboratory: `ends server PROCESSOR FIFO OBJECTS FILE` and `ends client PROCESSOR FIFO
//! REFERENCE`. `-` stands for an argument that is not used. A REFERENCE that begins with `@` is a file of references.
//! The protocol is in crates/probe/src/laboratory/end.rs.
//!
//! rustorb's IDL compiler needs a Python package that is not always available. So stubs and skeletons are written by
//! hand, with the calls that it generates.

mod end;

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use end::{greet, now_ns, place};
use rustorb_core::{
    CompletionStatus, EndpointAddr, InStream, ObjectRef, Orb, OrbOptions, OutStream, Servant, ServerReply,
    SystemException, SystemExceptionKind, minor,
};

type Outcome<T> = Result<T, String>;

fn said<E: std::fmt::Debug>(error: E) -> String {
    format!("{error:?}").replace('\n', " ")
}

#[derive(Clone)]
struct ComplexStruct {
    s: i16,
    l: i32,
    f: f32,
    d: f64,
    c: u8,
    name: String,
}

#[derive(Clone)]
struct PlainStruct {
    x: f64,
    y: f64,
    z: f64,
    at: i64,
    track: i32,
    quality: f32,
}

fn write_structs(out: &mut OutStream<'_>, data: &[ComplexStruct]) -> Result<(), SystemException> {
    out.write_u32(data.len() as u32);
    for one in data {
        out.write_i16(one.s);
        out.write_i32(one.l);
        out.write_f32(one.f);
        out.write_f64(one.d);
        out.write_octet(one.c);
        out.write_string(&one.name)?;
    }
    Ok(())
}

fn read_structs(input: &mut InStream<'_>) -> Result<Vec<ComplexStruct>, SystemException> {
    let count = input.read::<u32>()? as usize;
    let mut data = Vec::with_capacity(count.min(1 << 20));
    for _ in 0..count {
        data.push(ComplexStruct {
            s: input.read()?,
            l: input.read()?,
            f: input.read()?,
            d: input.read()?,
            c: input.read()?,
            name: input.read_string()?,
        });
    }
    Ok(data)
}

fn write_plain(out: &mut OutStream<'_>, data: &[PlainStruct]) {
    out.write_u32(data.len() as u32);
    for one in data {
        out.write_f64(one.x);
        out.write_f64(one.y);
        out.write_f64(one.z);
        out.write_i64(one.at);
        out.write_i32(one.track);
        out.write_f32(one.quality);
    }
}

fn read_plain(input: &mut InStream<'_>) -> Result<Vec<PlainStruct>, SystemException> {
    let count = input.read::<u32>()? as usize;
    let mut data = Vec::with_capacity(count.min(1 << 20));
    for _ in 0..count {
        data.push(PlainStruct {
            x: input.read()?,
            y: input.read()?,
            z: input.read()?,
            at: input.read()?,
            track: input.read()?,
            quality: input.read()?,
        });
    }
    Ok(data)
}

#[derive(Default)]
struct Mirror {
    arrived: AtomicU64,
}

impl Servant for Mirror {
    fn repository_id(&self) -> &str {
        "IDL:DeckwatchBench/Bench:1.0"
    }

    fn dispatch(&self, operation: &str, input: &mut InStream<'_>, reply: &mut ServerReply) -> Result<(), SystemException> {
        match operation {
            "echo_octets" => {
                let data = input.read_octet_seq()?;
                reply.output().write_octet_seq(data)?;
            }
            "echo_complex_sequence" => {
                let data = read_structs(input)?;
                write_structs(&mut reply.output(), &data)?;
            }
            "sink_octets" => drop(std::hint::black_box(input.read_octet_seq()?)),
            "sink_complex_sequence" => drop(std::hint::black_box(read_structs(input)?)),
            "sink_plain_sequence" => drop(std::hint::black_box(read_plain(input)?)),
            "send_octets" => {
                std::hint::black_box(input.read_octet_seq()?);
                self.arrived.fetch_add(1, Ordering::SeqCst);
            }
            "_get_calls" => reply.output().write_u64(self.arrived.load(Ordering::SeqCst)),
            "ping" => {}
            _ => {
                return Err(SystemException::new(
                    SystemExceptionKind::BAD_OPERATION,
                    minor::UNKNOWN_OPERATION,
                    CompletionStatus::No,
                ));
            }
        }
        Ok(())
    }
}

fn sleep_until(due_ns: i64) {
    let due = libc::timespec { tv_sec: due_ns / 1_000_000_000, tv_nsec: due_ns % 1_000_000_000 };
    // SAFETY: the time lives as long as the call; nothing is written.
    unsafe { while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &due, std::ptr::null_mut()) == libc::EINTR {} }
}

fn serve(objects: usize, file: &str) -> Outcome<()> {
    let orb = Orb::with_options(OrbOptions {
        endpoints: vec![EndpointAddr { host: "127.0.0.1".into(), port: 0 }],
        ..OrbOptions::default()
    })
    .map_err(said)?;
    let root = orb.root_poa().map_err(said)?;
    let mut references = Vec::new();
    for _ in 0..objects {
        let id = root.activate_object(Arc::new(Mirror::default())).map_err(said)?;
        let reference = root.id_to_reference(&id).map_err(said)?;
        references.push(orb.object_to_string(Some(&reference)).map_err(said)?);
    }
    if file != "-" {
        std::fs::write(file, references.join("\n")).map_err(said)?;
    }
    root.the_poa_manager().activate().map_err(said)?;
    greet(&references[0]);
    drop(references);
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    // The ORB's threads are not stopped first.
    std::process::exit(0);
}

struct Command<'l> {
    kind: &'l str,
    there: usize,
    count: usize,
    budget_ns: i64,
    period_ns: i64,
}

impl<'l> Command<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<i64>().ok();
        let (there, _, count, budget_ns) = (number()? as usize, number()?, number()? as usize, number()?);
        Some(Self { kind, there, count, budget_ns, period_ns: number().unwrap_or(0) })
    }

    fn take(&self, mut one: impl FnMut() -> Outcome<()>) -> Outcome<Vec<u8>> {
        let mut round_trips = vec![0_u32; self.count];
        for _ in 0..64 {
            one()?;
        }
        let (begin, mut taken) = (now_ns(), 0);
        let (mut before, mut due) = (begin, begin);
        while taken < self.count && before - begin < self.budget_ns {
            if self.period_ns != 0 {
                due += self.period_ns;
                sleep_until(due);
                before = now_ns();
            }
            one()?;
            let after = now_ns();
            round_trips[taken] = (after - before) as u32;
            taken += 1;
            before = after;
        }
        let mut answer = format!("ok {taken}\n").into_bytes();
        answer.extend(round_trips[..taken].iter().flat_map(|ns| ns.to_ne_bytes()));
        Ok(answer)
    }

    fn stream(&self, object: &ObjectRef, mut send: impl FnMut() -> Outcome<()>) -> Outcome<Vec<u8>> {
        let calls = || -> Outcome<u64> {
            let reply = object.request("_get_calls").invoke().map_err(said)?;
            reply.input().read::<u64>().map_err(said)
        };
        let arrived = calls()?;
        let (begin, mut sent) = (now_ns(), 0);
        while sent < self.count as u64 && now_ns() - begin < self.budget_ns {
            for _ in 0..16 {
                send()?;
            }
            sent += 16;
        }
        while calls()? < arrived + sent {}
        Ok(format!("sum {sent} {}\n", now_ns() - begin).into_bytes())
    }

    fn obey(&self, all: &[ObjectRef]) -> Outcome<Vec<u8>> {
        let object = &all[0];
        let octets: Vec<u8> = (0..self.there).map(|index| index as u8).collect();
        let element = ComplexStruct { s: 12, l: 34_567, f: 0.5, d: 2.25, c: b'x', name: "contact".to_owned() };
        let track = PlainStruct { x: 0.25, y: 0.5, z: 0.75, at: 1_234_567_890_123, track: 42, quality: 0.875 };
        match self.kind {
            "octets" => {
                let mut next = all.iter().cycle();
                self.take(|| {
                    let request = next.next().unwrap_or(object).request("echo_octets");
                    let reply = request.args(|out| Ok(out.write_octet_seq(&octets)?)).invoke().map_err(said)?;
                    let got = reply.input().read_octet_seq().map_err(said)?.to_vec();
                    if got.len() == octets.len() { Ok(()) } else { Err("another length".to_owned()) }
                })
            }
            "structs" => {
                let data = vec![element; self.there];
                self.take(|| {
                    let request = object.request("echo_complex_sequence");
                    let reply = request.args(|out| write_structs(out, &data)).invoke().map_err(said)?;
                    read_structs(&mut reply.input()).map(drop).map_err(said)
                })
            }
            "sink-octets" => self.take(|| {
                let request = object.request("sink_octets");
                request.args(|out| Ok(out.write_octet_seq(&octets)?)).invoke().map(drop).map_err(said)
            }),
            "sink-structs" => {
                let data = vec![element; self.there];
                self.take(|| {
                    let request = object.request("sink_complex_sequence");
                    request.args(|out| write_structs(out, &data)).invoke().map(drop).map_err(said)
                })
            }
            "sink-plain" => {
                let data = vec![track; self.there];
                self.take(|| {
                    let request = object.request("sink_plain_sequence").args(|out| {
                        write_plain(out, &data);
                        Ok(())
                    });
                    request.invoke().map(drop).map_err(said)
                })
            }
            "stream-octets" => self.stream(object, || {
                let request = object.request("send_octets");
                request.args(|out| Ok(out.write_octet_seq(&octets)?)).send_oneway().map_err(said)
            }),
            kind => Err(format!("'{kind}' is unknown to this end")),
        }
    }
}

fn call(reference: &str) -> Outcome<()> {
    let orb = Orb::with_options(OrbOptions::default()).map_err(said)?;
    let texts = match reference.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(said)?,
        None => reference.to_owned(),
    };
    let texts: Vec<&str> = texts.lines().collect();
    // A step without a common divisor with the count visits each object once before it repeats one.
    let step = [7_919, 104_729, 1_299_709].into_iter().find(|step| texts.len() % step != 0).unwrap_or(1);
    let mut all = Vec::new();
    for index in 0..texts.len() {
        let object = orb.string_to_object(texts[index * step % texts.len()]).map_err(said)?;
        all.push(object.ok_or("nil")?);
    }
    greet("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(said)?;
        let command = Command::parse(&line).ok_or("no command")?;
        let answer = command.obey(&all).unwrap_or_else(|words| format!("error {words}\n").into_bytes());
        let mut out = std::io::stdout();
        out.write_all(&answer).and_then(|()| out.flush()).map_err(said)?;
    }
    std::process::exit(0);
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let word = |index: usize| arguments.get(index).map_or("-", String::as_str);
    place(word(2), word(3));
    match word(1) {
        "server" => serve(word(4).parse().unwrap_or(1), word(5)),
        _ => call(word(4)),
    }
}
