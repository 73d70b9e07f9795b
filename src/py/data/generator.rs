//! Streams of random numbers: the default one, and generators of a program's own.

use crate::array::random::{self, Own, State};
use crate::process::sync::lock;
use crate::py::args::extracted;
use crate::py::data::create::Any;
use crate::py::data::dtype::{PyDevice, optional_device};
use crate::py::prelude::*;
use crate::watch::script;
use pyo3::exceptions::PyOverflowError;
use std::sync::{Arc, Mutex};

/// A seed as 64 bits. Negative ones wrap modulo 2^64, as in PyTorch.
fn bits(name: &str, seed: &Bound<'_, PyAny>) -> PyResult<u64> {
    let bits = seed.extract::<u64>().or_else(|_| seed.extract::<i64>().map(|s| s as u64));
    bits.map_err(|error| match error.is_instance_of::<PyOverflowError>(seed.py()) {
        true => value_error(format!(
            "{name}: a seed from -2^63 to 2^64 - 1 expected, got {seed}; take it modulo 2**64"
        )),
        false => match seed.get_type().name() {
            Ok(found) => type_error(format!("{name}: an integer expected, got {found}")),
            Err(error) => error,
        },
    })
}

/// The seed of a generator that was given none: that of PyTorch.
const FIRST: u64 = 67_280_421_310_721;

/// A stream of random numbers of a program's own, for the `generator` of functions that draw. A new one
/// begins at the same seed everywhere; the numbers of a seed are the same on every device.
///
/// Args:
///     device: accepted; numbers are drawn where the tensor lies that they are for.
///
/// Example:
///     >>> generator = wg.Generator().manual_seed(3)
///     >>> first = wg.rand(2, generator=generator)
///     >>> wg.equal(wg.rand(2, generator=generator.manual_seed(3)), first)
///     True
#[pyclass(name = "Generator", module = "wengert", frozen)]
pub struct Generator {
    /// The stream; `None` is the default one.
    own: Option<Own>,
    device: Device,
}

impl Generator {
    fn state(&self) -> State {
        self.own.as_ref().map_or_else(random::state, |own| *lock(own))
    }
    fn put(&self, state: State) {
        match &self.own {
            Some(own) => *lock(own) = state,
            None => {
                seeded();
                random::set_state(state);
            }
        }
    }
    fn at(state: State, device: Device) -> Generator {
        Generator { own: Some(Arc::new(Mutex::new(state))), device }
    }
}

#[pymethods]
impl Generator {
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(device: Any) -> PyResult<Generator> {
        let device = optional_device(device)?.unwrap_or_default();
        Ok(Generator::at(State { seed: FIRST, offset: 0 }, device))
    }

    /// Starts the stream over with this seed of 64 bits, and returns the generator.
    fn manual_seed<'py>(slf: &Bound<'py, Self>, seed: &Bound<'_, PyAny>) -> PyResult<Bound<'py, Self>> {
        slf.get().put(State { seed: bits("Generator.manual_seed", seed)?, offset: 0 });
        Ok(slf.clone())
    }

    /// Starts the stream over with a seed from the system, and returns that seed.
    fn seed(&self) -> u64 {
        let seed = random::system_seed();
        self.put(State { seed, offset: 0 });
        seed
    }

    /// Returns the seed of the stream.
    fn initial_seed(&self) -> u64 {
        self.state().seed
    }

    /// Returns seed and position of the stream.
    fn get_state(&self) -> (u64, u64) {
        let State { seed, offset } = self.state();
        (seed, offset)
    }

    /// Puts the stream where `get_state` found it, and returns the generator.
    fn set_state<'py>(slf: &Bound<'py, Self>, state: &Bound<'_, PyAny>) -> PyResult<Bound<'py, Self>> {
        slf.get().put(state_of("Generator.set_state", "get_state", state)?);
        Ok(slf.clone())
    }

    /// Returns another generator that stands where this one does.
    fn clone_state(&self) -> Generator {
        Generator::at(self.state(), self.device)
    }

    /// The device that was given.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice { device: self.device }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Arguments)> {
        let rebuild = slf.py().import("wengert._core")?.getattr("_generator")?;
        Ok((rebuild, (slf.get().get_state(), slf.get().device())))
    }

    fn __repr__(&self) -> String {
        let State { seed, offset } = self.state();
        format!("Generator(seed={seed}, position={offset}, device='{}')", self.device)
    }
}

/// The arguments of [`_generator`]: seed and position, and the device.
type Arguments = ((u64, u64), PyDevice);

/// A generator that stands at this seed and position.
#[pyfunction]
fn _generator(state: (u64, u64), device: &Bound<'_, PyAny>) -> PyResult<Generator> {
    let device = optional_device(Some(device))?.unwrap_or_default();
    Ok(Generator::at(State { seed: state.0, offset: state.1 }, device))
}

/// The `generator` of a function that draws: a stream of the program's own, or the default one.
pub struct Stream(Option<Own>);

impl Stream {
    /// The default stream.
    pub const DEFAULT: Stream = Stream(None);
    /// The stream of the program's own.
    pub fn own(&self) -> Option<&Own> {
        self.0.as_ref()
    }
}

extracted!(Stream, |obj| {
    if obj.is_none() {
        return Ok(Stream::DEFAULT);
    }
    match obj.cast::<Generator>() {
        Ok(generator) => {
            let own = generator.get().own.clone();
            if own.is_some() {
                script::refuse(|| {
                    "a generator of the program's own; draw without generator=, from wg.manual_seed".into()
                });
            }
            Ok(Stream(own))
        }
        Err(_) => Err(type_error(format!(
            "generator: a wengert.Generator expected, got {}; make one by wengert.Generator()",
            obj.get_type().name()?
        ))),
    }
});

/// What `getter` returned, as a state.
fn state_of(name: &str, getter: &str, state: &Bound<'_, PyAny>) -> PyResult<State> {
    let (seed, offset) = state.extract().map_err(|_| {
        let given = state.repr().map_or_else(|_| String::new(), |text| format!(", got {text}"));
        type_error(format!("{name}: what {getter} returned expected{given}"))
    })?;
    Ok(State { seed, offset })
}

/// Starts the default random stream over with this seed of 64 bits; the same numbers follow on every device.
/// Returns the default stream as a generator.
///
/// Without it every process draws numbers of its own, from a seed that the system gives (see `initial_seed`);
/// so do forked children, unless a seed was set before the fork, which they then share.
#[pyfunction]
fn manual_seed(seed: &Bound<'_, PyAny>) -> PyResult<Generator> {
    seeded();
    random::manual_seed(bits("manual_seed", seed)?);
    Ok(Generator { own: None, device: Device::Cpu })
}

/// A program goes on with the numbers where they are.
fn seeded() {
    script::refuse(|| "a new seed of the random numbers; set it before the call".into());
}

functions! {
    /// The default stream as a generator.
    _default_generator() -> Generator = Generator { own: None, device: Device::Cpu };
    /// Starts the default random stream over with a seed from the system, and returns that seed.
    seed() -> u64 = {
        seeded();
        random::seed()
    };
    /// Returns the seed of the default random stream: of the last `manual_seed` or `seed`, at first one that
    /// the system gave.
    initial_seed() -> u64 = random::state().seed;
    /// Returns seed and position of the default random stream.
    get_rng_state() -> (u64, u64) = {
        let s = random::state();
        (s.seed, s.offset)
    };
    /// Puts the default random stream where `get_rng_state` found it.
    set_rng_state(state: &Bound<'_, PyAny>) -> PyResult<()> = {
        random::set_state(state_of("set_rng_state", "get_rng_state", state)?);
        Ok(())
    };
}

exports! {
    classes: Generator;
    functions: _default_generator, _generator, manual_seed, seed, initial_seed, get_rng_state, set_rng_state
}
