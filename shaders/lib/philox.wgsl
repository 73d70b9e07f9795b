// Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011), a counter-based generator. A file with the line
// `//@ use philox` stands behind this text.

// The 64-bit product of a and b as (low, high), from 16-bit pieces.
fn multiply(a: u32, b: u32) -> vec2<u32> {
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let middle = a1 * b0 + ((a0 * b0) >> 16u);
  let other = a0 * b1 + (middle & 0xffffu);
  return vec2<u32>(a * b, a1 * b1 + (middle >> 16u) + (other >> 16u));
}

// The four words of a counter under a seed: ten rounds.
fn philox(counter: vec4<u32>, seed: vec2<u32>) -> vec4<u32> {
  var c = counter;
  var k = seed;
  for (var round = 0u; round < 10u; round += 1u) {
    let x = multiply(0xD2511F53u, c.x);
    let z = multiply(0xCD9E8D57u, c.z);
    c = vec4<u32>(z.y ^ c.y ^ k.x, z.x, x.y ^ c.w ^ k.y, x.x);
    k += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
