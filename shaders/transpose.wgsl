// Copy with exchanged axes: the rows of x become the columns of a dense output, in tiles of 32 x 32.
//
// bindings  0 x (read), 1 out (write), 2 params
// grid      a workgroup per tile: across * down of them for each matrix; linear fold over x, y, z
// workgroup 256 threads, 4.1 KiB of workgroup memory
//
// out[.., r, .., c] = x[.., c, .., r]: the columns c are the last axis of the output, the rows r the axis of
// which x has neighbours. Neighbouring threads read neighbours of x and write neighbours of the output; the
// tile is turned in workgroup memory, whose lines have one element more than they need, so that a column lies
// in as many banks as a row. `shape` and the two strides are of the axes besides these two. x_step is the
// stride of a column in x, out_step that of a row in the output, a multiple of EPW.
struct Params {
  shape: array<vec4<u32>, 2>,
  x_strides: array<vec4<u32>, 2>,
  out_strides: array<vec4<u32>, 2>,
  ndim: u32, rows: u32, columns: u32, x_step: u32, out_step: u32, x_off: u32, across: u32, down: u32,
  matrices: u32,
}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ load x
fn load_x(i: u32) -> T { return bitcast<f32>(x[i]); }
//@ store out
fn store_out(w: u32, v: vec2<T>) { out[w] = bitcast<u32>(v.x); }

const WORDS: u32 = 32u / EPW; // of a row of a tile
var<workgroup> tile: array<T, 1056>; // 32 columns of 33

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  var rest = group / p.across;
  let column = (group - rest * p.across) * 32u;
  let matrix = rest / p.down;
  let row = (rest - matrix * p.down) * 32u;
  if (matrix >= p.matrices) { return; }
  var at = vec2<u32>(p.x_off, 0u);
  rest = matrix;
  for (var d = p.ndim; d > 0u; d -= 1u) {
    let a = (d - 1u) >> 2u;
    let b = (d - 1u) & 3u;
    let next = rest / p.shape[a][b];
    at += (rest - next * p.shape[a][b]) * vec2<u32>(p.x_strides[a][b], p.out_strides[a][b]);
    rest = next;
  }
  for (var k = t; k < 1024u; k += 256u) {
    let c = column + k / 32u;
    let r = row + k % 32u;
    if (c < p.columns && r < p.rows) { tile[(k / 32u) * 33u + k % 32u] = load_x(at.x + c * p.x_step + r); }
  }
  workgroupBarrier();
  for (var k = t; k < 32u * WORDS; k += 256u) {
    let r = k / WORDS;
    let c = (k % WORDS) * EPW;
    if (row + r < p.rows && column + c < p.columns) {
      let v = vec2<T>(tile[c * 33u + r], tile[(c + EPW - 1u) * 33u + r]);
      store_out((at.y + (row + r) * p.out_step + column + c) / EPW, v);
    }
  }
}
