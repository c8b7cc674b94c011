"""One product of llama.cpp's prebuilt CPU library, as a peer for `cargo xtask bench kernels`.

    kernels.py BIN_DIR LIBRARY WEIGHTS X TYPE_ID N K M THREADS COPIES REPACK

WEIGHTS and X are files: a weight matrix of the type, and M rows of K f32. Prints `ready`, or `none`
where the library has no such way; then, for each line on standard input, runs the product with the
next of COPIES copies of the weights and prints the nanoseconds. A line `result PATH` writes the outputs
of the first copy there instead.
"""

import ctypes as C
import os
import sys
import time


class Init(C.Structure):
    _fields_ = [("size", C.c_size_t), ("buffer", C.c_void_p), ("no_alloc", C.c_bool)]


class ThreadPool(C.Structure):
    _fields_ = [("mask", C.c_bool * 512), ("threads", C.c_int), ("priority", C.c_int), ("poll", C.c_uint32),
                ("strict", C.c_bool), ("paused", C.c_bool)]


def main():
    folder, library, weights, activations = sys.argv[1:5]
    ty, n, k, m, threads, copies, repack = map(int, sys.argv[5:12])
    base = C.CDLL(os.path.join(folder, "libggml-base.so"), mode=C.RTLD_GLOBAL)
    cpu = C.CDLL(os.path.join(folder, library), mode=C.RTLD_GLOBAL)
    pointer = C.c_void_p

    def function(lib, name, result, *arguments):
        f = getattr(lib, name)
        f.restype, f.argtypes = result, list(arguments)
        return f

    init = function(base, "ggml_init", pointer, Init)
    new_2d = function(base, "ggml_new_tensor_2d", pointer, pointer, C.c_int, C.c_int64, C.c_int64)
    mul_mat = function(base, "ggml_mul_mat", pointer, pointer, pointer, pointer)
    new_graph = function(base, "ggml_new_graph", pointer, pointer)
    expand = function(base, "ggml_build_forward_expand", None, pointer, pointer)
    allocate = function(base, "ggml_backend_alloc_ctx_tensors_from_buft", pointer, pointer, pointer)
    put = function(base, "ggml_backend_tensor_set", None, pointer, C.c_char_p, C.c_size_t, C.c_size_t)
    get = function(base, "ggml_backend_tensor_get", None, pointer, pointer, C.c_size_t, C.c_size_t)
    compute = function(base, "ggml_backend_graph_compute", C.c_int, pointer, pointer)
    supports = function(base, "ggml_backend_dev_supports_op", C.c_bool, pointer, pointer)
    device_of = function(base, "ggml_backend_reg_dev_get", pointer, pointer, C.c_size_t)
    address = function(base, "ggml_backend_reg_get_proc_address", pointer, pointer, C.c_char_p)
    host = function(base, "ggml_backend_cpu_buffer_type", pointer)
    registry = function(cpu, "ggml_backend_cpu_reg", pointer)()
    backend = function(cpu, "ggml_backend_cpu_init", pointer)()
    function(cpu, "ggml_backend_cpu_set_n_threads", None, pointer, C.c_int)(backend, threads)
    # Threads that stay, as llama.cpp's programs keep them: without, each product would start its own.
    pool = function(base, "ggml_threadpool_params_default", ThreadPool, C.c_int)(threads)
    pool.poll = 0  # They would spin through the other sides' turns.
    pool = function(cpu, "ggml_threadpool_new", pointer, C.POINTER(ThreadPool))(pool)
    function(cpu, "ggml_backend_cpu_set_threadpool", None, pointer, pointer)(backend, pool)
    device = device_of(registry, 0)

    kind = host()
    if repack:
        extra = address(registry, b"ggml_backend_dev_get_extra_bufts")
        kinds = C.CFUNCTYPE(C.POINTER(pointer), pointer)(extra)(device)
        kind = next((kinds[i] for i in range(8) if kinds and kinds[i]), None)
        if not kind:
            print("none", flush=True)
            return
    context = lambda: init(Init((copies + 64) << 18, None, True))
    held, data = context(), open(weights, "rb").read()
    matrices = [new_2d(held, ty, k, n) for _ in range(copies)]
    if not allocate(held, kind):
        print("none", flush=True)
        return
    work = context()
    x = new_2d(work, 0, k, m)
    graphs, outputs = [], []
    for matrix in matrices:
        y = mul_mat(work, matrix, x)
        if not supports(device, y):
            print("none", flush=True)
            return
        graph = new_graph(work)
        expand(graph, y)
        graphs.append(graph)
        outputs.append(y)
    allocate(work, host())
    for matrix in matrices:
        put(matrix, data, 0, len(data))
    floats = open(activations, "rb").read()
    put(x, floats, 0, len(floats))
    print("ready", flush=True)
    at = 0
    for line in sys.stdin:
        if line.startswith("result"):
            out = C.create_string_buffer(4 * m * n)
            get(outputs[0], out, 0, len(out))
            open(line.split()[1], "wb").write(out.raw)
            print(0, flush=True)
            continue
        start = time.perf_counter_ns()
        compute(backend, graphs[at])
        print(time.perf_counter_ns() - start, flush=True)
        at = (at + 1) % copies


main()
