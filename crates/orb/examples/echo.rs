//! The echo interface: `echo serve [-ORB...]` prints its reference and serves until the process is ended;
//! `echo call REFERENCE` calls every operation of it and says what came back.

pub(crate) mod mirror;

use std::sync::Arc;
use std::time::{Duration, Instant};

use deckwatch_cdr::{Any, Char};
use deckwatch_orb::{ObjectRef, Orb, Servant};
use mirror::{ComplexStruct, EchoRef, EchoRefuseError, EchoSkeleton, Mirror};

/// Makes an echo object of `orb` and serves it, by its reference and as `corbaloc:...:PORT/Echo`.
pub(crate) fn activate(orb: &Orb) -> Result<ObjectRef, Box<dyn std::error::Error>> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let reference = root.servant_to_reference(&servant())?;
    orb.register_plain_key(b"Echo", &reference)?;
    Ok(reference)
}

/// Who serves an echo object.
pub(crate) fn servant() -> Arc<dyn Servant> {
    Arc::new(EchoSkeleton::new(Mirror::default()))
}

fn serve(orb: &Orb) -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", orb.object_to_string(&activate(orb)?));
    orb.seal();
    Ok(orb.run()?)
}

fn complex(number: i16) -> Result<ComplexStruct, Box<dyn std::error::Error>> {
    let (l, d) = (i32::from(number), f64::from(number) / 3.0);
    Ok(ComplexStruct {
        s: number,
        l,
        f: 0.5,
        d,
        c: Char(b'x'),
        name: "ship".try_into().map_err(|_| "a name")?,
    })
}

fn check(what: &str, holds: bool) -> Result<(), Box<dyn std::error::Error>> {
    println!("{what}: {}", if holds { "as sent" } else { "DIFFERENT" });
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Calls every operation of the echo object behind `reference`, one of them with a number of structs.
pub(crate) fn call(
    orb: &Orb,
    reference: &str,
    structs: i16,
) -> Result<(), Box<dyn std::error::Error>> {
    let object = orb.string_to_object(reference)?.ok_or("a nil reference")?;
    let echo = EchoRef::narrow(&object)?.ok_or("no Echo")?;
    echo.ping()?;
    check("string", echo.echo_string("ahoy")? == "ahoy")?;
    for len in [0, 64, 8_191, 100_000, 1_000_000] {
        let octets: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
        check(
            &format!("{len} octets"),
            echo.echo_octets(&octets)? == octets,
        )?;
    }
    check("struct", echo.echo_complex(&complex(7)?)? == complex(7)?)?;
    let many = (0..structs).map(complex).collect::<Result<Vec<_>, _>>()?;
    check("structs", echo.echo_complex_sequence(&many)? == many)?;
    let any = Any::from_value(&complex(9)?)?;
    check("any", echo.echo_any(&any)? == any)?;
    let outer = Any::from_value(&any)?;
    let outer_back = echo.echo_any(&outer)?;
    check(
        "nested any",
        outer_back.extract::<Any>()?.extract::<ComplexStruct>()? == complex(9)?,
    )?;
    check("nil", echo.echo_object(None)?.is_none())?;
    let back = echo
        .echo_object(Some(echo.object()))?
        .ok_or("nil came back")?;
    check(
        "object",
        EchoRef::unchecked_narrow(back).echo_octets(b"again")? == b"again",
    )?;
    let refused = echo.refuse("not today", 42);
    let told = matches!(refused, Err(EchoRefuseError::Refused(refused)) if refused.reason == "not today" && refused.code == 42);
    check("exception", told)?;
    call_oneways(&echo)
}

fn call_oneways(echo: &EchoRef) -> Result<(), Box<dyn std::error::Error>> {
    const COUNT: u64 = 300;
    let before = echo.calls()?;
    for number in before..before + COUNT {
        let mut octets = [0; 64];
        octets[0] = number as u8;
        echo.send_octets(&octets)?;
    }
    let begun = Instant::now();
    while echo.calls()? < before + COUNT && begun.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    check("300 oneways in order", echo.calls()? == before + COUNT)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().collect();
    let orb = Orb::init(&mut arguments)?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "serve"] => serve(&orb),
        [_, "call", reference] => call(&orb, reference, 2_000),
        _ => Err("write `echo serve` or `echo call REFERENCE`".into()),
    }
}
