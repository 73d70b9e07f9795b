// The places of an axis of p.axis_size that indices name, of which a launch has p.here, from p.first on. A
// file with the line `//@ use places` stands behind this text; it has these parameters in `p`, and binds
// `status`.

// The place of an index, which counts from the end if it is negative, from p.first on; p.here for one that is
// elsewhere. Of those outside of the axis one is reported: status[0] becomes 1 and status[1] the index.
fn place_of(given: u32) -> u32 {
  let place = select(given, given + p.axis_size, given > 0x7fffffffu);
  if (place >= p.axis_size) {
    atomicStore(&status[0], 1u);
    atomicStore(&status[1], given);
    return p.here;
  }
  return min(place - p.first, p.here);
}
