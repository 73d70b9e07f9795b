// The walk over many flat tensors in one dispatch, 1024 elements per workgroup, four adjacent ones per
// thread. The file behind it declares `p` with a table `tensors`: the first workgroup of tensor k, its count,
// and two words of its own.
//
// Such a file handles one tensor; for n of them the host repeats the lines that `tensors` marks: the bindings
// x0 to xn of each role, and the cases of the functions that read and write four elements.
//@ const TENSORS
const TENSORS: u32 = 1u;

// The tensor of a thread and its four elements, q * 4 to q * 4 + 3: which of them there are.
struct Share { tensor: u32, q: u32, here: vec4<bool> }

fn share_of(group: u32, t: u32) -> Share {
  var k = 0u;
  while (k + 1u < TENSORS && p.tensors[k + 1u].x <= group) { k += 1u; }
  let q = (group - p.tensors[k].x) * 256u + t;
  return Share(k, q, q * 4u + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(p.tensors[k].y));
}
