"""New tensors, and conversions."""

from hypothesis import strategies as st

from array_api.drawing import NUMBERS, REALS, SHAPES, Call, Cases, Draw, array, by_name, called, registering

CASES: Cases = {}
case = registering(CASES)


@case("arange")
def _range(name: str, draw: Draw) -> Call:
    start, stop, step = (draw(st.integers(-20, 20)) for _ in range(3))
    args = draw(st.sampled_from([(start, stop, step or 1), (start, stop), (stop,)]))
    # The default dtype is open, so it is given.
    as_float = draw(st.booleans())
    return lambda ns, _: (
        ns.arange(*(float(a) for a in args), dtype=ns.float64) if as_float else ns.arange(*args)
    )


@case("linspace")
def _spaced(name: str, draw: Draw) -> Call:
    start, stop, num, end = draw(
        st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 9), st.booleans())
    )
    return lambda ns, _: ns.linspace(start, stop, num, dtype=ns.float64, endpoint=end)


@case("eye")
def _eye(name: str, draw: Draw) -> Call:
    rows, columns, k = draw(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 4), st.integers(-5, 5)))
    return lambda ns, _: ns.eye(rows, columns, k=k, dtype=ns.int32)


@case("full", "ones", "zeros")
def _filled(name: str, draw: Draw) -> Call:
    shape, dtype = draw(SHAPES | st.integers(0, 3)), draw(st.sampled_from([*NUMBERS, "bool"]))
    value = [3] if name == "full" else []
    return lambda ns, _: by_name(ns, name)(shape, *value, dtype=getattr(ns, dtype))


@case("full_like", "ones_like", "zeros_like")
def _filled_like(name: str, draw: Draw) -> Call:
    x = array(draw, [*NUMBERS, "bool"])
    dtype = draw(st.sampled_from([None, *NUMBERS]))
    value = [3] if name == "full_like" else []
    return lambda ns, asarray: by_name(ns, name)(asarray(x), *value, dtype=dtype and getattr(ns, dtype))


@case("meshgrid")
def _grid(name: str, draw: Draw) -> Call:
    dtype = draw(st.sampled_from(NUMBERS))
    vectors = [array(draw, [dtype], (n,)) for n in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))]
    return called(name, *vectors, indexing=draw(st.sampled_from(["xy", "ij"])))


@case("astype")
def _converted(name: str, draw: Draw) -> Call:
    x = array(draw, low=0)
    dtype = draw(st.sampled_from([*REALS, "bool"]))
    return lambda ns, asarray: ns.astype(asarray(x), getattr(ns, dtype))
