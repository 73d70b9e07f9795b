// Systems with triangular matrices, in place over their right-hand sides, by substitution.
//
// bindings: x, out, info, p. grid: one thread per column, 256 a workgroup. `info` gets the number, from 1, of
// the first element on the diagonal that is met and zero; it is divided by all the same. The matrix is a
// block of one in which it begins at row `start`; if info tells of another block already, that remains.
struct Params { count: u32, n: u32, columns: u32, start: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read_write> info: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ const UPPER
const UPPER: bool = false; // the triangle that is read
//@ const UNIT
const UNIT: bool = false; // whether the diagonal counts as ones
//@ const TRANSPOSED
const TRANSPOSED: bool = false;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let column = (wid.x + groups.x * (wid.y + groups.y * wid.z)) * 256u + t;
  if (column >= p.count * p.columns) { return; }
  let matrix = column / p.columns;
  let b = matrix * p.n * p.columns + column % p.columns;
  let a = matrix * p.n * p.n;
  let steps = select(vec2<u32>(p.n, 1u), vec2<u32>(1u, p.n), TRANSPOSED); // of a row and a column
  let ends_first = UPPER != TRANSPOSED; // the last element is known first
  var failed = 0u;
  for (var done = 0u; done < p.n; done += 1u) {
    let i = select(done, p.n - 1u - done, ends_first);
    var sum = out[b + i * p.columns];
    for (var k = 0u; k < done; k += 1u) {
      let j = select(k, p.n - 1u - k, ends_first);
      sum -= x[a + i * steps.x + j * steps.y] * out[b + j * p.columns];
    }
    if (!UNIT) {
      let d = x[a + i * (p.n + 1u)];
      failed = select(failed, i + 1u, failed == 0u && d == 0.0);
      sum /= d;
    }
    out[b + i * p.columns] = sum;
  }
  if (failed > 0u && info[matrix] == 0u) { info[matrix] = p.start + failed; }
}
