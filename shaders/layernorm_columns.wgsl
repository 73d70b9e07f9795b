// VJP of layer normalisation, second of two dispatches: add up the slots of `partial` into dweight and dbias.
//
// bindings  0 partial (read, f32, [slots, 2, cols]), 1 dweight (write), 2 dbias (write), 3 params
// grid      ceil(words / 8) workgroups, words = ceil(cols / EPW); linear fold over x, y, z
// workgroup 256 threads = 8 words x 32 slices of the slots; 4 KiB of workgroup memory
//
// Slice j adds slots j, j + 32, ... in order, then slices are added in order: the result depends on shapes
// alone.
struct Params { slots: u32, cols: u32 }
@group(0) @binding(0) var<storage, read> partial: array<u32>;
@group(0) @binding(1) var<storage, read_write> dweight: array<u32>;
@group(0) @binding(2) var<storage, read_write> dbias: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

//@ alias T
alias T = f32;
//@ const EPW
const EPW: u32 = 1u;
//@ store dweight
fn store_dweight(w: u32, v: vec2<T>) { dweight[w] = bitcast<u32>(v.x); }
//@ store dbias
fn store_dbias(w: u32, v: vec2<T>) { dbias[w] = bitcast<u32>(v.x); }

var<workgroup> part: array<vec4<f32>, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) wid: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let group = wid.x + groups.x * (wid.y + groups.y * wid.z);
  if (group * 8u * EPW >= p.cols) { return; }
  let word = group * 8u + t % 8u;
  let col = word * EPW;
  var s = vec4<f32>(); // dweight of both elements of the word, then dbias of both
  for (var slot = t / 8u; slot < p.slots; slot += 32u) {
    let i = slot * 2u * p.cols + col;
    if (col < p.cols) {
      s.x += bitcast<f32>(partial[i]);
      s.z += bitcast<f32>(partial[i + p.cols]);
    }
    if (EPW == 2u && col + 1u < p.cols) {
      s.y += bitcast<f32>(partial[i + 1u]);
      s.w += bitcast<f32>(partial[i + p.cols + 1u]);
    }
  }
  part[t] = s;
  workgroupBarrier();
  if (t < 8u && col < p.cols) {
    var total = part[t];
    for (var j = 1u; j < 32u; j += 1u) { total += part[j * 8u + t]; }
    store_dweight(word, total.xy);
    store_dbias(word, total.zw);
  }
}
